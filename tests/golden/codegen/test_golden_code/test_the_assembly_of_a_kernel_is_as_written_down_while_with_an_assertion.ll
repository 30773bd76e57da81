define i32 @weft.kernel.main(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  %.1 = alloca i64, align 8
  br label %body
body:
  store i32 0, ptr %p1, align 4
  store i64 16384, ptr %.1
  br label %while.1
while.1:
  %.2 = load i32, ptr %p1, align 4
  %.3 = icmp slt i32 %.2, 8
  br i1 %.3, label %while.body.2, label %while.done.3
while.body.2:
  %.4 = load volatile i64, ptr %.1
  %.5 = sub i64 %.4, 3
  store volatile i64 %.5, ptr %.1
  %.6 = icmp sle i64 %.5, 0
  br i1 %.6, label %poll.due.4, label %poll.on.5, !prof !{!"branch_weights", i32 1, i32 2000}
poll.due.4:
  store i64 16384, ptr %.1
  %.7 = getelementptr i64, ptr %frame, i64 8
  %.8 = load ptr, ptr %.7
  %.9 = icmp ne ptr %.8, null
  br i1 %.9, label %poll.ask.6, label %poll.asked.7
poll.ask.6:
  %.10 = call i32 %.8(ptr %frame)
  %.11 = icmp ne i32 %.10, 0
  br i1 %.11, label %failed.8, label %ok.9, !prof !{!"branch_weights", i32 1, i32 2000}
failed.8:
  ret i32 %.10
ok.9:
  br label %poll.asked.7
poll.asked.7:
  br label %poll.on.5
poll.on.5:
  %.12 = load i32, ptr %p1, align 4
  %.13 = sext i32 %.12 to i64
  %.14 = icmp sle i64 0, %.13
  br i1 %.14, label %ok.11, label %assert.10, !prof !{!"branch_weights", i32 2000, i32 1}
assert.10:
  %.15 = load i32, ptr %p1, align 4
  %.16 = sext i32 %.15 to i64
  store i64 0, ptr %frame
  %.17 = getelementptr i64, ptr %frame, i64 10
  store i64 %.16, ptr %.17
  ret i32 1
ok.11:
  %.18 = load i32, ptr %p1, align 4
  %.19 = sext i32 %.18 to i64
  %.20 = getelementptr i32, ptr %p0, i64 %.19
  %.21 = load i32, ptr %.20, align 4
  %.22 = icmp sgt i32 %.21, 0
  br i1 %.22, label %ok.13, label %assert.12, !prof !{!"branch_weights", i32 2000, i32 1}
assert.12:
  %.23 = load i32, ptr %p1, align 4
  %.24 = sext i32 %.23 to i64
  %.25 = getelementptr i32, ptr %p0, i64 %.24
  %.26 = load i32, ptr %.25, align 4
  %.27 = sext i32 %.26 to i64
  store i64 1, ptr %frame
  %.28 = getelementptr i64, ptr %frame, i64 10
  store i64 %.27, ptr %.28
  %.29 = getelementptr i64, ptr %frame, i64 11
  store i64 %.24, ptr %.29
  ret i32 1
ok.13:
  %.30 = load i32, ptr %p1, align 4
  %.31 = sext i32 %.30 to i64
  %.32 = getelementptr i32, ptr %p0, i64 %.31
  %.33 = load i32, ptr %.32, align 4
  %.34 = add i32 %.30, %.33
  store i32 %.34, ptr %p1, align 4
  br label %while.1
while.done.3:
  ret i32 0
}

