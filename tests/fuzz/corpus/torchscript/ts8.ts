graph(%x : Tensor,
      %y : Tensor):
  %3 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=0]()
  %9 : Tensor = aten::add(%x, %y, %3)
  %10 : Tensor = aten::lgamma(%x)
  %11 : Tensor = aten::mul(%x, %y)
  %12 : Tensor = aten::lgamma(%y)
  %13 : Tensor = aten::div(%x, %y)
  %14 : Tensor = aten::lgamma(%13)
  %15 : Tensor[] = prim::ListConstruct(%10, %12, %14, %9, %11)
  %16 : Tensor = aten::cat(%15, %4)
  return (%16)
