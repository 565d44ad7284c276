graph(%self : __torch__.Counter,
      %x.1 : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=2]() # make_graphs.py:152:25
  %state.1 : Tensor = prim::GetAttr[name="state"](%self)
  %before.1 : Tensor = aten::relu(%state.1) # make_graphs.py:151:17
  %6 : Tensor = aten::mul(%x.1, %3) # make_graphs.py:152:21
   = prim::SetAttr[name="state"](%self, %6)
  %state : Tensor = prim::GetAttr[name="state"](%self)
  %8 : Tensor = aten::relu(%state) # make_graphs.py:153:24
  %9 : Tensor = aten::add(%before.1, %8, %2) # make_graphs.py:153:15
  return (%9)
