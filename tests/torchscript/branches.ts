graph(%self : __torch__.Branches,
      %x.1 : Tensor,
      %flag.1 : bool,
      %other.1 : bool):
  %4 : int = prim::Constant[value=-1]() # make_graphs.py:164:28
  %5 : int = prim::Constant[value=0]() # make_graphs.py:164:24
  %6 : int = aten::size(%x.1, %5) # make_graphs.py:164:17
  %shape.1 : int[] = prim::ListConstruct(%6, %4)
  %first : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="first"](%self)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%first)
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%first)
  %24 : Tensor = aten::linear(%x.1, %weight.1, %bias.1) # linear.py:134:15
  %h.1 : Tensor = aten::relu(%24) # make_graphs.py:165:12
  %h : Tensor = prim::If(%flag.1) # make_graphs.py:166:8
    block0():
      %h.5 : Tensor = aten::log_sigmoid(%h.1) # make_graphs.py:167:16
      %h.49 : Tensor = prim::If(%other.1) # make_graphs.py:168:12
        block0():
          %second : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="second"](%self)
          %weight : Tensor = prim::GetAttr[name="weight"](%second)
          %bias : Tensor = prim::GetAttr[name="bias"](%second)
          %27 : Tensor = aten::linear(%h.5, %weight, %bias) # linear.py:134:15
          %16 : Tensor = aten::relu(%27) # make_graphs.py:169:20
          %h.11 : Tensor = aten::view(%16, %shape.1) # make_graphs.py:169:20
          -> (%h.11)
        block1():
          %h.17 : Tensor = aten::tanh(%h.5) # make_graphs.py:171:20
          -> (%h.17)
      -> (%h.49)
    block1():
      %19 : Tensor = aten::view(%h.1, %shape.1) # make_graphs.py:173:27
      %h.33 : Tensor = aten::tanh(%19) # make_graphs.py:173:16
      -> (%h.33)
  %21 : Tensor = aten::relu(%h) # make_graphs.py:174:15
  return (%21)
