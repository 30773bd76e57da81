define internal i64 @weft.sort.$ordered.$name(ptr %keys, i64 %count) noinline nounwind {
entry:
  %pairs = sub i64 %count, 1
  %last = sub i64 %pairs, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %more ]
  %is_last = icmp uge i64 %at, %last
  %from = select i1 %is_last, i64 %last, i64 %at
  %after = add i64 %from, 1
  %place = getelementptr $key, ptr %keys, i64 %from
  %place_after = getelementptr $key, ptr %keys, i64 %after
  %vector = load $vector, ptr %place, align $bytes
  %vector_after = load $vector, ptr %place_after, align $bytes
  %differs = icmp $breaks $vector %vector, %vector_after
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %other, label %more
more:
  %next = add i64 %at, $lanes
  br i1 %is_last, label %same, label %head
same:
  ret i64 %count
other:
  %lane = call i$lanes @llvm.cttz.i$lanes(i$lanes %bits, i1 true)
  %wide = zext i$lanes %lane to i64
  %end = add i64 %after, %wide
  ret i64 %end
}
