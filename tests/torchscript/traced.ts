graph(%self.1 : __torch__.torch.nn.modules.container.Sequential,
      %input.1 : Float(1, 3, 8, 8, strides=[192, 64, 8, 1], requires_grad=0, device=cpu)):
  %_2 : __torch__.torch.nn.modules.flatten.Flatten = prim::GetAttr[name="2"](%self.1)
  %_1 : __torch__.torch.nn.modules.activation.ReLU = prim::GetAttr[name="1"](%self.1)
  %_0 : __torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d = prim::GetAttr[name="0"](%self.1)
  %8 : bool = prim::Constant[value=1](), scope: __module.0 # conv.py:560:0
  %9 : bool = prim::Constant[value=0](), scope: __module.0 # conv.py:560:0
  %10 : int = prim::Constant[value=0](), scope: __module.0 # conv.py:560:0
  %11 : int = prim::Constant[value=1](), scope: __module.0 # conv.py:560:0
  %bias : Tensor = prim::GetAttr[name="bias"](%_0)
  %weight : Tensor = prim::GetAttr[name="weight"](%_0)
  %14 : int[] = prim::ListConstruct(%11, %11), scope: __module.0
  %15 : int[] = prim::ListConstruct(%10, %10), scope: __module.0
  %16 : int[] = prim::ListConstruct(%11, %11), scope: __module.0
  %17 : int[] = prim::ListConstruct(%10, %10), scope: __module.0
  %input.3 : Float(1, 4, 6, 6, strides=[144, 36, 6, 1], requires_grad=0, device=cpu) = aten::_convolution(%input.1, %weight, %bias, %14, %15, %16, %9, %17, %11, %9, %9, %8, %8), scope: __module.0 # conv.py:560:0
  %input : Float(1, 4, 6, 6, strides=[144, 36, 6, 1], requires_grad=1, device=cpu) = aten::relu_(%input.3), scope: __module.1 # functional.py:1775:0
  %20 : int = prim::Constant[value=-1](), scope: __module.2 # flatten.py:55:0
  %21 : int = prim::Constant[value=1](), scope: __module.2 # flatten.py:55:0
  %22 : Float(1, 144, strides=[144, 1], requires_grad=1, device=cpu) = aten::flatten(%input, %21, %20), scope: __module.2 # flatten.py:55:0
  return (%22)
