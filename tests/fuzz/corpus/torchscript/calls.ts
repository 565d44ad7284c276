graph(%self : __torch__.Branches,
      %x.1 : Tensor,
      %flag.1 : bool,
      %other.1 : bool):
  %9 : int = prim::Constant[value=-1]() # make_graphs.py:164:28
  %5 : int = prim::Constant[value=0]() # make_graphs.py:164:24
  %6 : int = aten::size(%x.1, %5) # make_graphs.py:164:17
  %shape.1 : int[] = prim::ListConstruct(%6, %9)
  %first : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="first"](%self)
  %13 : Tensor = prim::CallMethod[name="forward"](%first, %x.1) # make_graphs.py:165:23
  %h.1 : Tensor = aten::relu(%13) # make_graphs.py:165:12
  %h : Tensor = prim::If(%flag.1) # make_graphs.py:166:8
    block0():
      %h.5 : Tensor = aten::log_sigmoid(%h.1) # make_graphs.py:167:16
      %h.49 : Tensor = prim::If(%other.1) # make_graphs.py:168:12
        block0():
          %second : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="second"](%self)
          %24 : Tensor = prim::CallMethod[name="forward"](%second, %h.5) # make_graphs.py:169:31
          %25 : Tensor = aten::relu(%24) # make_graphs.py:169:20
          %h.11 : Tensor = aten::view(%25, %shape.1) # make_graphs.py:169:20
          -> (%h.11)
        block1():
          %h.17 : Tensor = aten::tanh(%h.5) # make_graphs.py:171:20
          -> (%h.17)
      -> (%h.49)
    block1():
      %39 : Tensor = aten::view(%h.1, %shape.1) # make_graphs.py:173:27
      %h.33 : Tensor = aten::tanh(%39) # make_graphs.py:173:16
      -> (%h.33)
  %48 : Tensor = aten::relu(%h) # make_graphs.py:174:15
  return (%48)
