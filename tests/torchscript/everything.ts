graph(%self : __torch__.Everything,
      %x.1 : Tensor,
      %d.1 : Dict(str, Tensor),
      %t.1 : (int, float?)):
  %4 : Device = prim::Constant[value="cpu"]()
  %5 : str = prim::Constant[value="w"]() # make_graphs.py:213:32
  %6 : str = prim::Constant[value="y"]() # make_graphs.py:213:16
  %7 : bool = prim::Constant[value=0]()
  %8 : NoneType = prim::Constant()
  %9 : bool = prim::Constant[value=1]() # make_graphs.py:209:8
  %10 : str = prim::Constant[value="y\\n"]() # make_graphs.py:208:14
  %11 : str = prim::Constant[value="builtins.ValueError"]() # make_graphs.py:207:18
  %12 : str = prim::Constant[value="dim {} of \"y\", h\0)+\/.)"]() # make_graphs.py:207:29
  %13 : int = prim::Constant[value=4]() # make_graphs.py:206:22
  %14 : float = prim::Constant[value=1.]() # make_graphs.py:212:27
  %15 : float = prim::Constant[value=2.]() # make_graphs.py:212:32
  %16 : float = prim::Constant[value=3.]() # make_graphs.py:212:39
  %17 : float = prim::Constant[value=4.5]() # make_graphs.py:212:44
  %18 : int = prim::Constant[value=0]() # make_graphs.py:213:44
  %19 : int = prim::Constant[value=1]() # make_graphs.py:213:49
  %20 : float = prim::Constant[value=1.5]() # make_graphs.py:213:86
  %21 : float = prim::Constant[value=1.0000000000000001e+300]() # make_graphs.py:213:91
  %bn : __torch__.torch.nn.modules.batchnorm.BatchNorm2d = prim::GetAttr[name="bn"](%self)
  %conv : __torch__.torch.nn.modules.conv.Conv2d = prim::GetAttr[name="conv"](%self)
  %47 : int = prim::Constant[value=0]() # conv.py:561:46
  %48 : int = prim::Constant[value=1]() # conv.py:561:33
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%conv)
  %bias.1 : Tensor? = prim::GetAttr[name="bias"](%conv)
  %51 : int[] = prim::ListConstruct(%48, %48)
  %52 : int[] = prim::ListConstruct(%47, %47)
  %53 : int[] = prim::ListConstruct(%48, %48)
  %54 : Tensor = aten::conv2d(%x.1, %weight.1, %bias.1, %51, %52, %53, %48) # conv.py:560:15
  %55 : bool = prim::Constant[value=1]() # functional.py:2913:8
  %56 : int = prim::Constant[value=2]() # functional.py:2857:31
  %57 : int = prim::Constant[value=0]() # functional.py:2856:22
  %58 : str = prim::Constant[value="Expected more than 1 value per channel when training, got input size {}"]() # functional.py:2861:12
  %59 : str = prim::Constant[value="builtins.ValueError"]() # batchnorm.py:496:18
  %60 : str = prim::Constant[value="expected 4D input (got {}D input)"]() # batchnorm.py:496:29
  %61 : int = prim::Constant[value=4]() # batchnorm.py:495:26
  %62 : int = prim::Constant[value=1]() # batchnorm.py:190:46
  %63 : float = prim::Constant[value=0.10000000000000001]()
  %64 : float = prim::Constant[value=1.0000000000000001e-05]() # batchnorm.py:223:12
  %65 : int = aten::dim(%54) # batchnorm.py:495:11
  %66 : bool = aten::ne(%65, %61) # batchnorm.py:495:11
   = prim::If(%66) # batchnorm.py:495:8
    block0():
      %67 : int = aten::dim(%54) # batchnorm.py:496:55
      %68 : str = aten::format(%60, %67) # batchnorm.py:496:29
       = prim::RaiseException(%68, %59) # batchnorm.py:496:12
      -> ()
    block1():
      -> ()
  %training.1 : bool = prim::GetAttr[name="training"](%bn)
   = prim::If(%training.1) # batchnorm.py:187:11
    block0():
      %num_batches_tracked.7 : Tensor = prim::GetAttr[name="num_batches_tracked"](%bn)
      %71 : Tensor = aten::add_(%num_batches_tracked.7, %62, %62) # batchnorm.py:190:16
      -> ()
    block1():
      -> ()
  %training.3 : bool = prim::GetAttr[name="training"](%bn)
  %running_mean : Tensor = prim::GetAttr[name="running_mean"](%bn)
  %running_var : Tensor = prim::GetAttr[name="running_var"](%bn)
  %weight : Tensor = prim::GetAttr[name="weight"](%bn)
  %bias : Tensor = prim::GetAttr[name="bias"](%bn)
   = prim::If(%training.3) # functional.py:2893:4
    block0():
      %77 : int[] = aten::size(%54) # functional.py:2895:27
      %size_prods.1 : int = aten::__getitem__(%77, %57) # functional.py:2856:17
      %79 : int = aten::len(%77) # functional.py:2857:19
      %80 : int = aten::sub(%79, %56) # functional.py:2857:19
      %size_prods : int = prim::Loop(%80, %55, %size_prods.1) # functional.py:2857:4
        block0(%i.1 : int, %size_prods.11 : int):
          %84 : int = aten::add(%i.1, %56) # functional.py:2858:27
          %85 : int = aten::__getitem__(%77, %84) # functional.py:2858:22
          %size_prods.5 : int = aten::mul(%size_prods.11, %85) # functional.py:2858:8
          -> (%55, %size_prods.5)
      %87 : bool = aten::eq(%size_prods, %62) # functional.py:2859:7
       = prim::If(%87) # functional.py:2859:4
        block0():
          %88 : str = aten::format(%58, %77) # functional.py:2861:12
           = prim::RaiseException(%88, %59) # functional.py:2860:8
          -> ()
        block1():
          -> ()
      -> ()
    block1():
      -> ()
  %y.1 : Tensor = aten::batch_norm(%54, %weight, %bias, %running_mean, %running_var, %training.3, %63, %64, %55) # functional.py:2904:11
  %26 : int = aten::dim(%y.1) # make_graphs.py:206:11
  %27 : bool = aten::ne(%26, %13) # make_graphs.py:206:11
   = prim::If(%27) # make_graphs.py:206:8
    block0():
      %28 : int = aten::dim(%y.1) # make_graphs.py:207:63
      %29 : str = aten::format(%12, %28) # make_graphs.py:207:29
       = prim::RaiseException(%29, %11) # make_graphs.py:207:12
      -> ()
    block1():
      -> ()
  %30 : int[] = aten::size(%y.1) # <string>:13:9
   = prim::Print(%10, %30) # make_graphs.py:208:8
  %names.1 : str[] = prim::GetAttr[name="names"](%self)
  %32 : int = aten::len(%names.1) # make_graphs.py:209:8
   = prim::Loop(%32, %9) # make_graphs.py:209:8
    block0(%33 : int):
      %name.1 : str = aten::__getitem__(%names.1, %33) # make_graphs.py:209:8
       = aten::_set_item(%d.1, %name.1, %y.1) # make_graphs.py:210:12
      -> (%9)
  %noise.1 : Tensor = aten::rand_like(%y.1, %8, %8, %8, %8, %8) # make_graphs.py:211:16
  %36 : float[] = prim::ListConstruct(%14, %15)
  %37 : float[] = prim::ListConstruct(%16, %17)
  %38 : float[][] = prim::ListConstruct(%36, %37)
  %w.1 : Tensor = aten::tensor(%38, %8, %8, %7) # make_graphs.py:212:12
  %40 : Tensor = aten::add(%y.1, %noise.1, %19) # make_graphs.py:213:21
  %41 : Dict(str, Tensor) = prim::DictConstruct(%6, %40, %5, %w.1)
  %42 : int = prim::TupleIndex(%t.1, %18)
  %43 : int = aten::add(%42, %19) # make_graphs.py:213:42
  %names : str[] = prim::GetAttr[name="names"](%self)
  %45 : (int, str[]) = prim::TupleConstruct(%43, %names)
  %46 : (Dict(str, Tensor), (int, str[]), Device, float, float) = prim::TupleConstruct(%41, %45, %4, %20, %21)
  return (%46)
