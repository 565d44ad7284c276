graph(%x : Tensor,
      %w1 : Tensor,
      %w2 : Tensor,
      %w3 : Tensor):
  %4 : NoneType = prim::Constant()
  %5 : int = prim::Constant[value=1]()
  %6 : int = prim::Constant[value=0]()
  %8 : bool = prim::Constant[value=0]()
  %9 : int[] = prim::ListConstruct(%5, %5)
  %10 : int[] = prim::ListConstruct(%6, %6)
  %11 : Tensor = aten::conv2d(%x, %w1, %4, %9, %10, %9, %5)
  %12 : Tensor = aten::conv2d(%11, %w2, %4, %9, %10, %9, %5)
  %13 : Tensor = aten::log_sigmoid(%11)
  %14 : Tensor = aten::conv2d(%13, %w3, %4, %9, %10, %9, %5)
  %15 : Tensor = aten::relu(%12)
  %16 : Tensor = aten::add(%14, %15, %5)
  %17 : Tensor = aten::max_pool2d(%16, %9, %9, %10, %9, %8)
  return (%17)
