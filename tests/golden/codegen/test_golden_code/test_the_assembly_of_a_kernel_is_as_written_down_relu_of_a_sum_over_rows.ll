declare float @llvm.maximum.f32(float, float)
define i32 @weft.kernel.fused_sum_relu(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  %.1 = alloca [32 x i8], align 64
  br label %body
body:
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %.1, align 4
  %.2 = mul i64 %for.1.i, 10
  %.3 = getelementptr float, ptr %p0, i64 %.2
  %.4 = load <8 x float>, ptr %.3, align 4
  %.5 = fadd contract <8 x float> splat (float 0x0000000000000000), %.4
  store <8 x float> %.5, ptr %.1, align 4
  %.6 = load <2 x float>, ptr %.1, align 4
  %.7 = getelementptr float, ptr %.3, i64 8
  %.8 = load <2 x float>, ptr %.7, align 4
  %.9 = fadd contract <2 x float> %.6, %.8
  store <2 x float> %.9, ptr %.1, align 4
  %.10 = load <4 x float>, ptr %.1, align 4
  %.11 = getelementptr float, ptr %.1, i64 4
  %.12 = load <4 x float>, ptr %.11, align 4
  %.13 = fadd contract <4 x float> %.10, %.12
  store <4 x float> %.13, ptr %.1, align 4
  %.14 = load <2 x float>, ptr %.1, align 4
  %.15 = getelementptr float, ptr %.1, i64 2
  %.16 = load <2 x float>, ptr %.15, align 4
  %.17 = fadd contract <2 x float> %.14, %.16
  store <2 x float> %.17, ptr %.1, align 4
  %.18 = load float, ptr %.1, align 4
  %.19 = getelementptr float, ptr %.1, i64 1
  %.20 = load float, ptr %.19, align 4
  %.21 = fadd reassoc contract float %.18, %.20
  store float %.21, ptr %.1, align 4
  %.22 = fadd contract float 0x0000000000000000, %.21
  %.23 = getelementptr float, ptr %p1, i64 %for.1.i
  store float %.22, ptr %.23, align 4
  %.24 = call nsz float @llvm.maximum.f32(float %.22, float 0x0000000000000000)
  store float %.24, ptr %.23, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.25 = icmp ne i64 %for.1.n, 3
  br i1 %.25, label %for.1, label %for.done.3
for.done.3:
  ret i32 0
}

