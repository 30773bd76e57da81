define i32 @weft.kernel.matmul(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  %.1 = alloca [128 x i8], align 64
  %.2 = alloca [32 x i8], align 64
  br label %body
body:
  store <8 x float> splat (float 0x0000000000000000), ptr %.1, align 4
  %.3 = getelementptr float, ptr %.1, i64 8
  store <8 x float> splat (float 0x0000000000000000), ptr %.3, align 4
  %.4 = getelementptr float, ptr %.1, i64 16
  store <8 x float> splat (float 0x0000000000000000), ptr %.4, align 4
  %.5 = getelementptr float, ptr %.1, i64 24
  store <8 x float> splat (float 0x0000000000000000), ptr %.5, align 4
  br label %for.6
for.6:
  %for.6.i = phi i64 [ 0, %body ], [ %for.6.n, %for.next.7 ]
  %.6 = mul i64 %for.6.i, 8
  %.7 = getelementptr float, ptr %p1, i64 %.6
  %.8 = load <8 x float>, ptr %.7, align 4
  store <8 x float> %.8, ptr %.2, align 4
  %.9 = load <8 x float>, ptr %.1, align 4
  %.10 = getelementptr float, ptr %p0, i64 %for.6.i
  %.11 = load float, ptr %.10, align 4
  %.12 = insertelement <8 x float> poison, float %.11, i64 0
  %.13 = shufflevector <8 x float> %.12, <8 x float> poison, <8 x i32> zeroinitializer
  %.14 = fmul contract <8 x float> %.13, %.8
  %.15 = fadd contract <8 x float> %.9, %.14
  store <8 x float> %.15, ptr %.1, align 4
  %.16 = load <8 x float>, ptr %.3, align 4
  %.17 = getelementptr float, ptr %.10, i64 8
  %.18 = load float, ptr %.17, align 4
  %.19 = insertelement <8 x float> poison, float %.18, i64 0
  %.20 = shufflevector <8 x float> %.19, <8 x float> poison, <8 x i32> zeroinitializer
  %.21 = fmul contract <8 x float> %.20, %.8
  %.22 = fadd contract <8 x float> %.16, %.21
  store <8 x float> %.22, ptr %.3, align 4
  %.23 = load <8 x float>, ptr %.4, align 4
  %.24 = getelementptr float, ptr %.10, i64 16
  %.25 = load float, ptr %.24, align 4
  %.26 = insertelement <8 x float> poison, float %.25, i64 0
  %.27 = shufflevector <8 x float> %.26, <8 x float> poison, <8 x i32> zeroinitializer
  %.28 = fmul contract <8 x float> %.27, %.8
  %.29 = fadd contract <8 x float> %.23, %.28
  store <8 x float> %.29, ptr %.4, align 4
  %.30 = load <8 x float>, ptr %.5, align 4
  %.31 = getelementptr float, ptr %.10, i64 24
  %.32 = load float, ptr %.31, align 4
  %.33 = insertelement <8 x float> poison, float %.32, i64 0
  %.34 = shufflevector <8 x float> %.33, <8 x float> poison, <8 x i32> zeroinitializer
  %.35 = fmul contract <8 x float> %.34, %.8
  %.36 = fadd contract <8 x float> %.30, %.35
  store <8 x float> %.36, ptr %.5, align 4
  br label %for.next.7
for.next.7:
  %for.6.n = add nsw i64 %for.6.i, 1
  %.37 = icmp ne i64 %for.6.n, 8
  br i1 %.37, label %for.6, label %for.done.8
for.done.8:
  %.38 = load <8 x float>, ptr %.1, align 4
  store <8 x float> %.38, ptr %p2, align 4
  %.39 = load <8 x float>, ptr %.3, align 4
  %.40 = getelementptr float, ptr %p2, i64 8
  store <8 x float> %.39, ptr %.40, align 4
  %.41 = load <8 x float>, ptr %.4, align 4
  %.42 = getelementptr float, ptr %p2, i64 16
  store <8 x float> %.41, ptr %.42, align 4
  %.43 = load <8 x float>, ptr %.5, align 4
  %.44 = getelementptr float, ptr %p2, i64 24
  store <8 x float> %.43, ptr %.44, align 4
  ret i32 0
}

