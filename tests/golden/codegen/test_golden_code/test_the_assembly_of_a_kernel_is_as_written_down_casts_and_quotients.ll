declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32 immarg, <8 x i1>, <8 x i32>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare <8 x i32> @llvm.fptosi.sat.v8i32.v8f32(<8 x float>)
declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, i32 immarg, <8 x i1>)
define i32 @weft.kernel.main(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  br label %body
body:
  %.1 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %p0, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i32> zeroinitializer)
  %.2 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p1, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
  %.3 = call <8 x i32> @llvm.fptosi.sat.v8i32.v8f32(<8 x float> %.2)
  %.4 = icmp eq <8 x i32> %.3, splat (i32 0)
  %.5 = icmp eq <8 x i32> %.3, splat (i32 -1)
  %.6 = or <8 x i1> %.4, %.5
  %.7 = select <8 x i1> %.6, <8 x i32> splat (i32 1), <8 x i32> %.3
  %.8 = srem <8 x i32> %.1, %.7
  %.9 = icmp ne <8 x i32> %.8, splat (i32 0)
  %.10 = xor <8 x i32> %.8, %.7
  %.11 = icmp slt <8 x i32> %.10, splat (i32 0)
  %.12 = and <8 x i1> %.9, %.11
  %.13 = sdiv <8 x i32> %.1, %.7
  %.14 = sub <8 x i32> %.13, splat (i32 1)
  %.15 = select <8 x i1> %.12, <8 x i32> %.14, <8 x i32> %.13
  %.16 = sub <8 x i32> splat (i32 0), %.1
  %.17 = select <8 x i1> %.5, <8 x i32> %.16, <8 x i32> %.15
  %.18 = select <8 x i1> %.4, <8 x i32> splat (i32 0), <8 x i32> %.17
  %.19 = trunc <8 x i32> %.18 to <8 x i8>
  %.20 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %p0, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i32> zeroinitializer)
  %.21 = icmp eq <8 x i32> splat (i32 3), splat (i32 0)
  %.22 = icmp eq <8 x i32> splat (i32 3), splat (i32 -1)
  %.23 = or <8 x i1> %.21, %.22
  %.24 = select <8 x i1> %.23, <8 x i32> splat (i32 1), <8 x i32> splat (i32 3)
  %.25 = srem <8 x i32> %.20, %.24
  %.26 = icmp ne <8 x i32> %.25, splat (i32 0)
  %.27 = xor <8 x i32> %.25, %.24
  %.28 = icmp slt <8 x i32> %.27, splat (i32 0)
  %.29 = and <8 x i1> %.26, %.28
  %.30 = add <8 x i32> %.25, %.24
  %.31 = select <8 x i1> %.29, <8 x i32> %.30, <8 x i32> %.25
  %.32 = select <8 x i1> %.23, <8 x i32> splat (i32 0), <8 x i32> %.31
  %.33 = trunc <8 x i32> %.32 to <8 x i8>
  %.34 = add <8 x i8> %.19, %.33
  call void @llvm.masked.store.v8i8.p0(<8 x i8> %.34, ptr %p2, i32 1, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
  ret i32 0
}

