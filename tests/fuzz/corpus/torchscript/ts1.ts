graph(%x : Tensor,
      %w1 : Tensor,
      %w2 : Tensor,
      %w3 : Tensor):
  %4 : NoneType = prim::Constant()
  %5 : int = prim::Constant[value=1]()
  %6 : int = prim::Constant[value=0]()
  %9 : int[] = prim::ListConstruct(%5, %5)
  %10 : int[] = prim::ListConstruct(%6, %6)
  %11 : Tensor = aten::conv2d(%x, %w1, %4, %9, %10, %9, %5)
  %12 : Tensor = aten::relu(%11)
  %13 : Tensor = aten::conv2d(%12, %w2, %4, %9, %10, %9, %5)
  %14 : Tensor = aten::log_sigmoid(%13)
  %15 : Tensor = aten::conv2d(%14, %w3, %4, %9, %10, %9, %5)
  return (%15)
