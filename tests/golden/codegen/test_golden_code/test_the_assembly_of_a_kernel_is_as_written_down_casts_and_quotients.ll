declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32 immarg, <8 x i1>, <8 x i32>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, i32 immarg, <8 x i1>)
define i32 @weft.kernel.main(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  br label %body
body:
  %.1 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %p0, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i32> zeroinitializer)
  %.2 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p1, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
  %.3 = fcmp oge <8 x float> %.2, splat (float 0x41E0000000000000)
  %.4 = fcmp olt <8 x float> %.2, splat (float 0xC1E0000000000000)
  %.5 = fcmp uno <8 x float> %.2, %.2
  %.6 = or <8 x i1> %.3, %.4
  %.7 = or <8 x i1> %.5, %.6
  %.8 = select <8 x i1> %.7, <8 x float> zeroinitializer, <8 x float> %.2
  %.9 = fptosi <8 x float> %.8 to <8 x i32>
  %.10 = select <8 x i1> %.3, <8 x i32> splat (i32 2147483647), <8 x i32> %.9
  %.11 = select <8 x i1> %.4, <8 x i32> splat (i32 -2147483648), <8 x i32> %.10
  %.12 = icmp eq <8 x i32> %.11, splat (i32 0)
  %.13 = icmp eq <8 x i32> %.11, splat (i32 -1)
  %.14 = or <8 x i1> %.12, %.13
  %.15 = select <8 x i1> %.14, <8 x i32> splat (i32 1), <8 x i32> %.11
  %.16 = srem <8 x i32> %.1, %.15
  %.17 = icmp ne <8 x i32> %.16, splat (i32 0)
  %.18 = xor <8 x i32> %.16, %.15
  %.19 = icmp slt <8 x i32> %.18, splat (i32 0)
  %.20 = and <8 x i1> %.17, %.19
  %.21 = sdiv <8 x i32> %.1, %.15
  %.22 = sub <8 x i32> %.21, splat (i32 1)
  %.23 = select <8 x i1> %.20, <8 x i32> %.22, <8 x i32> %.21
  %.24 = sub <8 x i32> splat (i32 0), %.1
  %.25 = select <8 x i1> %.13, <8 x i32> %.24, <8 x i32> %.23
  %.26 = select <8 x i1> %.12, <8 x i32> splat (i32 0), <8 x i32> %.25
  %.27 = trunc <8 x i32> %.26 to <8 x i8>
  %.28 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %p0, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i32> zeroinitializer)
  %.29 = icmp eq <8 x i32> splat (i32 3), splat (i32 0)
  %.30 = icmp eq <8 x i32> splat (i32 3), splat (i32 -1)
  %.31 = or <8 x i1> %.29, %.30
  %.32 = select <8 x i1> %.31, <8 x i32> splat (i32 1), <8 x i32> splat (i32 3)
  %.33 = srem <8 x i32> %.28, %.32
  %.34 = icmp ne <8 x i32> %.33, splat (i32 0)
  %.35 = xor <8 x i32> %.33, %.32
  %.36 = icmp slt <8 x i32> %.35, splat (i32 0)
  %.37 = and <8 x i1> %.34, %.36
  %.38 = add <8 x i32> %.33, %.32
  %.39 = select <8 x i1> %.37, <8 x i32> %.38, <8 x i32> %.33
  %.40 = select <8 x i1> %.31, <8 x i32> splat (i32 0), <8 x i32> %.39
  %.41 = trunc <8 x i32> %.40 to <8 x i8>
  %.42 = add <8 x i8> %.27, %.41
  call void @llvm.masked.store.v8i8.p0(<8 x i8> %.42, ptr %p2, i32 1, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
  ret i32 0
}

