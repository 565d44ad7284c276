graph(%b : Tensor,
      %c : Tensor,
      %i : Tensor):
  %3 : NoneType = prim::Constant()
  %4 : int = prim::Constant[value=1]()
  %5 : int = prim::Constant[value=0]()
  %7 : bool = prim::Constant[value=0]()
  %8 : int[] = prim::ListConstruct(%4, %4)
  %10 : Tensor = aten::reshape(%b, %8)
  %11 : Tensor = aten::reshape(%c, %8)
  %12 : Tensor = aten::reshape(%b, %8)
  %13 : Tensor = aten::to(%10, %4, %7, %7, %3)
  %14 : int[] = aten::size(%b)
  %15 : int[] = aten::add(%14, %8)
  %16 : Tensor = aten::index_add_(%12, %5, %i, %11, %4)
  %17 : Tensor = aten::reshape(%16, %15)
  %18 : Tensor = aten::add(%17, %13, %4)
  return (%18)
