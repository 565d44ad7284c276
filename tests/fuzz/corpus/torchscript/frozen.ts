graph(%self : __torch__.___torch_mangle_0.Everything,
      %x.1 : Tensor,
      %d.1 : Dict(str, Tensor),
      %t.1 : (int, float?)):
  %102 : int[] = prim::Constant[value=[0, 0]]()
  %101 : int[] = prim::Constant[value=[1, 1]]()
  %21 : float = prim::Constant[value=1.0000000000000001e+300]() # make_graphs.py:213:91
  %20 : float = prim::Constant[value=1.5]() # make_graphs.py:213:86
  %19 : int = prim::Constant[value=1]() # make_graphs.py:213:49
  %18 : int = prim::Constant[value=0]() # make_graphs.py:213:44
  %13 : int = prim::Constant[value=4]() # make_graphs.py:206:22
  %12 : str = prim::Constant[value="dim {} of \"y\", h\0)+\/.)"]() # make_graphs.py:207:29
  %11 : str = prim::Constant[value="builtins.ValueError"]() # make_graphs.py:207:18
  %10 : str = prim::Constant[value="y\\n"]() # make_graphs.py:208:14
  %8 : NoneType = prim::Constant()
  %6 : str = prim::Constant[value="y"]() # make_graphs.py:213:16
  %5 : str = prim::Constant[value="w"]() # make_graphs.py:213:32
  %4 : Device = prim::Constant[value="cpu"]()
  %self.names : str[] = prim::Constant[value=["a", "b"]]()
  %self.conv.weight_fused_bn : Float(4, 3, 3, 3, strides=[27, 9, 3, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %self.conv.bias_fused_bn : Float(4, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=-0.1109  0.1106  0.1019  0.1477 [ CPUFloatType{4} ]]()
  %54 : Tensor = aten::conv2d(%x.1, %self.conv.weight_fused_bn, %self.conv.bias_fused_bn, %101, %102, %101, %19) # conv.py:560:15
  %26 : int = aten::dim(%54) # make_graphs.py:206:11
  %27 : bool = aten::ne(%26, %13) # make_graphs.py:206:11
   = prim::If(%27) # make_graphs.py:206:8
    block0():
      %29 : str = aten::format(%12, %26) # make_graphs.py:207:29
       = prim::RaiseException(%29, %11) # make_graphs.py:207:12
      -> ()
    block1():
      -> ()
  %30 : int[] = aten::size(%54) # <string>:13:9
   = prim::Print(%10, %30) # make_graphs.py:208:8
  %126 : str = prim::Constant[value="a"]()
   = aten::_set_item(%d.1, %126, %54) # make_graphs.py:210:12
  %127 : str = prim::Constant[value="b"]()
   = aten::_set_item(%d.1, %127, %54) # make_graphs.py:210:12
  %noise.1 : Tensor = aten::rand_like(%54, %8, %8, %8, %8, %8) # make_graphs.py:211:16
  %129 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::Constant[value= 1.0000  2.0000  3.0000  4.5000 [ CPUFloatType{2,2} ]]()
  %40 : Tensor = aten::add(%54, %noise.1, %19) # make_graphs.py:213:21
  %41 : Dict(str, Tensor) = prim::DictConstruct(%6, %40, %5, %129)
  %42 : int = prim::TupleIndex(%t.1, %18)
  %43 : int = aten::add(%42, %19) # make_graphs.py:213:42
  %45 : (int, str[]) = prim::TupleConstruct(%43, %self.names)
  %46 : (Dict(str, Tensor), (int, str[]), Device, float, float) = prim::TupleConstruct(%41, %45, %4, %20, %21)
  return (%46)
