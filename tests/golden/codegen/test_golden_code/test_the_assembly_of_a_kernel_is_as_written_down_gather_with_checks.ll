define i32 @weft.kernel.take(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  %.1 = alloca [4 x i8], align 64
  br label %body
body:
  store i32 0, ptr %.1, align 4
  %.5 = sub i64 0, 9
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  %.2 = load i32, ptr %.1, align 4
  %.3 = getelementptr i64, ptr %p1, i64 %for.1.i
  %.4 = load i64, ptr %.3, align 8
  %.6 = icmp sge i64 %.4, %.5
  br i1 %.6, label %more.4, label %done.5
more.4:
  %.7 = load i64, ptr %.3, align 8
  %.8 = icmp slt i64 %.7, 9
  br label %done.5
done.5:
  %.9 = phi i1 [ false, %for.1 ], [ %.8, %more.4 ]
  %.10 = select i1 %.9, i32 0, i32 1
  %.11 = or i32 %.2, %.10
  store i32 %.11, ptr %.1, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.12 = icmp ne i64 %for.1.n, 6
  br i1 %.12, label %for.1, label %for.done.3
for.done.3:
  %.13 = load i32, ptr %.1, align 4
  %.14 = icmp ne i32 %.13, 0
  br i1 %.14, label %then.6, label %endif.8
then.6:
  br label %for.9
for.9:
  %for.9.i = phi i64 [ 0, %then.6 ], [ %for.9.n, %for.next.10 ]
  %.15 = getelementptr i64, ptr %p1, i64 %for.9.i
  %.16 = load i64, ptr %.15, align 8
  %.17 = icmp sge i64 %.16, %.5
  br i1 %.17, label %more.14, label %done.15
more.14:
  %.18 = load i64, ptr %.15, align 8
  %.19 = icmp slt i64 %.18, 9
  br label %done.15
done.15:
  %.20 = phi i1 [ false, %for.9 ], [ %.19, %more.14 ]
  br i1 %.20, label %ok.13, label %assert.12, !prof !{!"branch_weights", i32 2000, i32 1}
assert.12:
  %.21 = load i64, ptr %.15, align 8
  store i64 0, ptr %frame
  %.22 = getelementptr i64, ptr %frame, i64 10
  store i64 %.21, ptr %.22
  %.23 = getelementptr i64, ptr %frame, i64 11
  store i64 %for.9.i, ptr %.23
  ret i32 1
ok.13:
  br label %for.next.10
for.next.10:
  %for.9.n = add nsw i64 %for.9.i, 1
  %.24 = icmp ne i64 %for.9.n, 6
  br i1 %.24, label %for.9, label %for.done.11
for.done.11:
  br label %endif.8
endif.8:
  br label %for.16
for.16:
  %for.16.i = phi i64 [ 0, %endif.8 ], [ %for.16.n, %for.next.17 ]
  %.25 = getelementptr i64, ptr %p1, i64 %for.16.i
  %.26 = load i64, ptr %.25, align 8
  %.27 = icmp slt i64 %.26, 0
  %.28 = add i64 %.26, 9
  %.29 = select i1 %.27, i64 %.28, i64 %.26
  %.30 = mul i64 %.29, 4
  %.31 = getelementptr float, ptr %p0, i64 %.30
  %.32 = load <4 x float>, ptr %.31, align 4
  %.33 = mul i64 %for.16.i, 4
  %.34 = getelementptr float, ptr %p2, i64 %.33
  store <4 x float> %.32, ptr %.34, align 4
  br label %for.next.17
for.next.17:
  %for.16.n = add nsw i64 %for.16.i, 1
  %.35 = icmp ne i64 %for.16.n, 6
  br i1 %.35, label %for.16, label %for.done.18
for.done.18:
  ret i32 0
}

