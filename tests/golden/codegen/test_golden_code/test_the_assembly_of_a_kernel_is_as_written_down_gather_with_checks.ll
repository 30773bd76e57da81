declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)
define i32 @weft.kernel.take(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1, ptr noalias nocapture %p2) nounwind noinline {
entry:
  br label %body
body:
  %.3 = sub i64 0, 9
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  %.1 = getelementptr i64, ptr %p1, i64 %for.1.i
  %.2 = load i64, ptr %.1, align 8
  %.4 = icmp sge i64 %.2, %.3
  br i1 %.4, label %more.6, label %done.7
more.6:
  %.5 = load i64, ptr %.1, align 8
  %.6 = icmp slt i64 %.5, 9
  br label %done.7
done.7:
  %.7 = phi i1 [ false, %for.1 ], [ %.6, %more.6 ]
  br i1 %.7, label %ok.5, label %assert.4, !prof !{!"branch_weights", i32 2000, i32 1}
assert.4:
  %.8 = load i64, ptr %.1, align 8
  store i64 0, ptr %frame
  %.9 = getelementptr i64, ptr %frame, i64 10
  store i64 %.8, ptr %.9
  %.10 = getelementptr i64, ptr %frame, i64 11
  store i64 %for.1.i, ptr %.10
  ret i32 1
ok.5:
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.11 = icmp ne i64 %for.1.n, 6
  br i1 %.11, label %for.1, label %for.done.3
for.done.3:
  br label %for.8
for.8:
  %for.8.i = phi i64 [ 0, %for.done.3 ], [ %for.8.n, %for.next.9 ]
  %.12 = getelementptr i64, ptr %p1, i64 %for.8.i
  %.13 = load i64, ptr %.12, align 8
  %.14 = icmp slt i64 %.13, 0
  %.15 = add i64 %.13, 9
  %.16 = select i1 %.14, i64 %.15, i64 %.13
  %.17 = icmp sle i64 0, %.16
  br i1 %.17, label %more.13, label %done.14
more.13:
  %.18 = load i64, ptr %.12, align 8
  %.19 = icmp slt i64 %.18, 0
  %.20 = add i64 %.18, 9
  %.21 = select i1 %.19, i64 %.20, i64 %.18
  %.22 = icmp sle i64 %.21, 8
  br label %done.14
done.14:
  %.23 = phi i1 [ false, %for.8 ], [ %.22, %more.13 ]
  br i1 %.23, label %ok.12, label %assert.11, !prof !{!"branch_weights", i32 2000, i32 1}
assert.11:
  %.24 = load i64, ptr %.12, align 8
  store i64 1, ptr %frame
  %.25 = getelementptr i64, ptr %frame, i64 10
  store i64 %.24, ptr %.25
  %.26 = getelementptr i64, ptr %frame, i64 11
  store i64 %for.8.i, ptr %.26
  ret i32 1
ok.12:
  %.27 = add i64 %for.8.i, 2
  %.28 = call i64 @llvm.smin.i64(i64 %.27, i64 5)
  %.29 = getelementptr i64, ptr %p1, i64 %.28
  %.30 = load i64, ptr %.29, align 8
  %.31 = icmp slt i64 %.30, 0
  %.32 = add i64 %.30, 9
  %.33 = select i1 %.31, i64 %.32, i64 %.30
  %.34 = mul i64 %.33, 4
  %.35 = getelementptr float, ptr %p0, i64 %.34
  call void @llvm.prefetch.p0(ptr %.35, i32 0, i32 2, i32 1)
  %.36 = load i64, ptr %.12, align 8
  %.37 = icmp slt i64 %.36, 0
  %.38 = add i64 %.36, 9
  %.39 = select i1 %.37, i64 %.38, i64 %.36
  %.40 = mul i64 %.39, 4
  %.41 = getelementptr float, ptr %p0, i64 %.40
  %.42 = load <4 x float>, ptr %.41, align 4
  %.43 = mul i64 %for.8.i, 4
  %.44 = getelementptr float, ptr %p2, i64 %.43
  store <4 x float> %.42, ptr %.44, align 4
  br label %for.next.9
for.next.9:
  %for.8.n = add nsw i64 %for.8.i, 1
  %.45 = icmp ne i64 %for.8.n, 6
  br i1 %.45, label %for.8, label %for.done.10
for.done.10:
  ret i32 0
}

