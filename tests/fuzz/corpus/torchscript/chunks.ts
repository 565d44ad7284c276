graph(%self : __torch__.Chunks,
      %x.1 : Tensor,
      %y.1 : Tensor?):
  %3 : Function = prim::Constant[name="dropout"]()
  %4 : bool = prim::Constant[value=0]() # make_graphs.py:192:48
  %5 : NoneType = prim::Constant() # make_graphs.py:190:20
  %6 : int = prim::Constant[value=2]() # make_graphs.py:189:42
  %7 : int = prim::Constant[value=1]() # make_graphs.py:189:45
  %8 : float = prim::Constant[value=0.5]() # make_graphs.py:192:43
  %9 : Tensor = aten::relu(%x.1) # make_graphs.py:189:27
  %10 : Tensor[] = aten::chunk(%9, %6, %7) # make_graphs.py:189:15
  %a.1 : Tensor, %b.1 : Tensor = prim::ListUnpack(%10)
  %13 : bool = aten::__isnot__(%y.1, %5) # make_graphs.py:190:11
  %a : Tensor = prim::If(%13) # make_graphs.py:190:8
    block0():
      %y.7 : Tensor = prim::unchecked_cast(%y.1)
      %a.5 : Tensor = aten::add(%a.1, %y.7, %7) # make_graphs.py:191:16
      -> (%a.5)
    block1():
      -> (%a.1)
  %22 : float = prim::Constant[value=1.]() # functional.py:1494:22
  %23 : float = prim::Constant[value=0.]() # functional.py:1494:11
  %24 : bool = prim::Constant[value=1]() # functional.py:1494:7
  %25 : str = prim::Constant[value="dropout probability has to be between 0 and 1, but got {}"]() # functional.py:1495:25
  %26 : str = prim::Constant[value="builtins.ValueError"]() # functional.py:1495:14
  %27 : bool = aten::lt(%8, %23) # functional.py:1494:7
  %28 : bool = prim::If(%27) # functional.py:1494:7
    block0():
      -> (%24)
    block1():
      %29 : bool = aten::gt(%8, %22) # functional.py:1494:18
      -> (%29)
   = prim::If(%28) # functional.py:1494:4
    block0():
      %30 : str = aten::format(%25, %8) # functional.py:1495:25
       = prim::RaiseException(%30, %26) # functional.py:1495:8
      -> ()
    block1():
      -> ()
  %c.1 : Tensor = prim::If(%4) # functional.py:1497:8
    block0():
      %32 : Tensor = aten::dropout_(%a, %8, %4) # functional.py:1497:8
      -> (%32)
    block1():
      %33 : Tensor = aten::dropout(%a, %8, %4) # functional.py:1497:57
      -> (%33)
  %18 : Tensor = aten::tanh(%c.1) # make_graphs.py:193:15
  %19 : Tensor = aten::mul(%18, %b.1) # make_graphs.py:193:15
  %20 : Tensor[] = prim::ListConstruct(%a, %b.1)
  %21 : (Tensor, Tensor[]) = prim::TupleConstruct(%19, %20)
  return (%21)
