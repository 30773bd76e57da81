define internal i1 @weft.sort.before.$name($keys, i64 %a, i64 %b) alwaysinline nounwind {
  %key.a = getelementptr $key, ptr %keys, i64 %a
  %key.b = getelementptr $key, ptr %keys, i64 %b
  %key.x = load $key, ptr %key.a, align $bytes
  %key.y = load $key, ptr %key.b, align $bytes
  %less = icmp ult $key %key.x, %key.y
  ret i1 %less
}

define internal void @weft.sort.swap.$name($keys, i64 %a, i64 %b) alwaysinline nounwind {
  %key.a = getelementptr $key, ptr %keys, i64 %a
  %key.b = getelementptr $key, ptr %keys, i64 %b
  %key.x = load $key, ptr %key.a, align $bytes
  %key.y = load $key, ptr %key.b, align $bytes
  store $key %key.y, ptr %key.a, align $bytes
  store $key %key.x, ptr %key.b, align $bytes
  ret void
}

define internal void @weft.sort.reverse.$name($keys, i64 %count) noinline nounwind {
entry:
  %end = sub i64 %count, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %vectors ]
  %other = sub i64 %end, %at
  %next = add i64 %at, $lanes
  %is_apart = icmp sle i64 %next, %other
  br i1 %is_apart, label %vectors, label %rest
vectors:
  %key.a = getelementptr $key, ptr %keys, i64 %at
  %key.b = getelementptr $key, ptr %keys, i64 %other
  %key.x = load $vector, ptr %key.a, align $bytes
  %key.y = load $vector, ptr %key.b, align $bytes
  %key.u = shufflevector $vector %key.x, $vector poison, <$lanes x i32> <$reverse>
  %key.v = shufflevector $vector %key.y, $vector poison, <$lanes x i32> <$reverse>
  store $vector %key.v, ptr %key.a, align $bytes
  store $vector %key.u, ptr %key.b, align $bytes
  br label %head
rest:
  %low = phi i64 [ %at, %head ], [ %low_next, %swap ]
  %from_end = sub i64 %count, %low
  %high = sub i64 %from_end, 1
  %is_below = icmp slt i64 %low, %high
  br i1 %is_below, label %swap, label %done
swap:
  call void @weft.sort.swap.$name($keys, i64 %low, i64 %high)
  %low_next = add i64 %low, 1
  br label %rest
done:
  ret void
}

define internal void @weft.sort.take.$name($keys, i64 %at, i64 %right, $spare, i64 %left, i1 %is_right) alwaysinline nounwind {
  %key.a.place = getelementptr $key, ptr %spare, i64 %left
  %key.b.place = getelementptr $key, ptr %keys, i64 %right
  %key.a = load $key, ptr %key.a.place, align $bytes
  %key.b = load $key, ptr %key.b.place, align $bytes
  %key.c = select i1 %is_right, $key %key.b, $key %key.a
  %key.c.place = getelementptr $key, ptr %keys, i64 %at
  store $key %key.c, ptr %key.c.place, align $bytes
  ret void
}

define internal void @weft.sort.copy.$name($keys, i64 %to, $spare, i64 %from, i64 %count) alwaysinline nounwind {
  %key.to = getelementptr $key, ptr %keys, i64 %to
  %key.from = getelementptr $key, ptr %spare, i64 %from
  %size = mul i64 %count, $bytes
  call void @llvm.memcpy.p0.p0.i64(ptr %key.to, ptr %key.from, i64 %size, i1 false)
  ret void
}

define internal void @weft.sort.shift.$name($keys, i64 %to, i64 %from, i64 %count) alwaysinline nounwind {
  %key.to = getelementptr $key, ptr %keys, i64 %to
  %key.from = getelementptr $key, ptr %keys, i64 %from
  %size = mul i64 %count, $bytes
  call void @llvm.memmove.p0.p0.i64(ptr %key.to, ptr %key.from, i64 %size, i1 false)
  ret void
}
