define i32 @weft.kernel.add(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  br label %body
body:
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  %.1 = mul i64 %for.1.i, 8
  %.2 = getelementptr float, ptr %p0, i64 %.1
  %.3 = load <8 x float>, ptr %.2, align 4
  %.4 = getelementptr float, ptr %p1, i64 %.1
  %.5 = load <8 x float>, ptr %.4, align 4
  %.6 = fadd contract <8 x float> %.3, %.5
  %.7 = getelementptr float, ptr %p2, i64 %.1
  store <8 x float> %.6, ptr %.7, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.8 = icmp ne i64 %for.1.n, 2
  br i1 %.8, label %for.1, label %for.done.3
for.done.3:
  %.9 = getelementptr float, ptr %p0, i64 16
  %.10 = load <4 x float>, ptr %.9, align 4
  %.11 = getelementptr float, ptr %p1, i64 16
  %.12 = load <4 x float>, ptr %.11, align 4
  %.13 = fadd contract <4 x float> %.10, %.12
  %.14 = getelementptr float, ptr %p2, i64 16
  store <4 x float> %.13, ptr %.14, align 4
  ret i32 0
}

