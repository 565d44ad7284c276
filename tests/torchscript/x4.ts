graph(%x : Tensor):
  %2 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=2]()
  %8 : Tensor = aten::add(%x, %2, %2)
  %9 : Tensor = aten::mul_(%x, %4)
  %10 : Tensor = aten::mul(%9, %8)
  return (%10)
