graph(%x : Tensor,
      %y : Tensor):
  %3 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=0]()
  %9 : Tensor = aten::add(%x, %y, %3)
  %10 : int = aten::size(%9, %4)
  %11 : Tensor = prim::NumToTensor(%10)
  %12 : bool = aten::is_floating_point(%11)
  %13 : Tensor = prim::If(%12)
    block0():
      %14 : Tensor = aten::sub(%9, %y, %3)
      -> (%14)
    block1():
      %15 : Tensor = aten::sub(%y, %9, %3)
      -> (%15)
  %16 : Tensor = prim::If(%12)
    block0():
      %17 : Tensor = aten::sub(%13, %y, %3)
      -> (%17)
    block1():
      %18 : Tensor = aten::sub(%y, %13, %3)
      -> (%18)
  %19 : Tensor = aten::add(%13, %16, %3)
  return (%19)
