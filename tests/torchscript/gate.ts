graph(%self : __torch__.Gate,
      %x.1 : Tensor,
      %flag.1 : bool):
  %3 : int = prim::Constant[value=1]() # make_graphs.py:139:26
   = prim::If(%flag.1) # make_graphs.py:138:8
    block0():
      %buf.1 : Tensor = prim::GetAttr[name="buf"](%self)
      %5 : Tensor = aten::add_(%buf.1, %3, %3) # make_graphs.py:139:12
      -> ()
    block1():
      -> ()
  %6 : Tensor = aten::relu(%x.1) # make_graphs.py:140:15
  %buf : Tensor = prim::GetAttr[name="buf"](%self)
  %8 : Tensor = aten::add(%6, %buf, %3) # make_graphs.py:140:15
  return (%8)
