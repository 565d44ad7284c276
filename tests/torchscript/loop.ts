graph(%self : __torch__.Loop,
      %x.1 : Tensor,
      %n.1 : int):
  %3 : int = prim::Constant[value=0]()
  %4 : bool = prim::Constant[value=1]() # make_graphs.py:181:8
  %out.1 : Tensor[] = prim::ListConstruct()
  %x.5 : Tensor = aten::relu(%x.1) # make_graphs.py:180:12
  %x : Tensor = prim::Loop(%n.1, %4, %x.5) # make_graphs.py:181:8
    block0(%i.1 : int, %x.17 : Tensor):
      %10 : Tensor = aten::tanh(%x.17) # make_graphs.py:182:16
      %x.9 : Tensor = aten::mul(%10, %i.1) # make_graphs.py:182:16
      %12 : Tensor[] = aten::append(%out.1, %x.9) # make_graphs.py:183:12
      -> (%4, %x.9)
  %13 : Tensor = aten::relu(%x) # make_graphs.py:184:15
  %14 : Tensor = aten::stack(%out.1, %3) # make_graphs.py:184:30
  %15 : (Tensor, Tensor) = prim::TupleConstruct(%13, %14)
  return (%15)
