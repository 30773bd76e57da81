define internal i64 @weft.sort.$ordered.$name(ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %negative = call $vector @weft.sort.code_of.$name(ptr %codes, i64 0)
  %other = call $vector @weft.sort.code_of.$name(ptr %codes, i64 1)
  %magnitude = call $vector @weft.sort.code_of.$name(ptr %codes, i64 2)
  %infinity = call $vector @weft.sort.code_of.$name(ptr %codes, i64 3)
  %pairs = sub i64 %count, 1
  %last = sub i64 %pairs, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %more ]
  %is_last = icmp uge i64 %at, %last
  %start = select i1 %is_last, i64 %last, i64 %at
  %after = add i64 %start, 1
  %here = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %start, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %there = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %after, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %differs = icmp $breaks $vector %here, %there
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %break, label %more
more:
  %next = add i64 %at, $lanes
  br i1 %is_last, label %same, label %head
same:
  ret i64 %count
break:
  %lane = call i$lanes @llvm.cttz.i$lanes(i$lanes %bits, i1 true)
  %wide = zext i$lanes %lane to i64
  %end = add i64 %after, %wide
  ret i64 %end
}
