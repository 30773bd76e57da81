define void @weft.sort.found$bits.$name(ptr noalias %to, ptr noalias %counts, ptr noalias %from, i64 %count, i64 %room, $element %magnitude) nounwind {
entry:
  %magnitude.0 = insertelement $elements poison, $element %magnitude, i64 0
  %magnitudes = shufflevector $elements %magnitude.0, $elements poison, <$lanes x i32> zeroinitializer
  %whole = and i64 %count, -$lanes
  %roomy = sub i64 %room, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %at.next, %vectors ]
  %kept = phi i64 [ 0, %entry ], [ %kept.next, %vectors ]
  %positions = phi $vector [ <$counted>, %entry ], [ %positions.next, %vectors ]
  %is_whole = icmp ult i64 %at, %whole
  %is_roomy = icmp sle i64 %kept, %roomy
  %goes_on = and i1 %is_whole, %is_roomy
  br i1 %goes_on, label %vectors, label %masked
vectors:
  %found = call <$lanes x i1> @weft.sort.nonzero$bits.$name(ptr %from, i64 %at, $elements %magnitudes)
  %packed = call $vector @llvm.experimental.vector.compress.$suffix($vector %positions, <$lanes x i1> %found, $vector poison)
  %target = getelementptr $key, ptr %to, i64 %kept
  store $vector %packed, ptr %target, align $bytes
  %found.bits = bitcast <$lanes x i1> %found to i$lanes
  %found.count = call i$lanes @llvm.ctpop.i$lanes(i$lanes %found.bits)
  %more = zext i$lanes %found.count to i64
  %kept.next = add i64 %kept, %more
  %positions.next = add $vector %positions, splat ($key $lanes)
  %at.next = add i64 %at, $lanes
  br label %head
masked:
  %at.m = phi i64 [ %at, %head ], [ %at.m.next, %each ]
  %kept.m = phi i64 [ %kept, %head ], [ %kept.m.next, %each ]
  %positions.m = phi $vector [ %positions, %head ], [ %positions.m.next, %each ]
  %is_whole.m = icmp ult i64 %at.m, %whole
  br i1 %is_whole.m, label %each, label %rest
each:
  %found.m = call <$lanes x i1> @weft.sort.nonzero$bits.$name(ptr %from, i64 %at.m, $elements %magnitudes)
  %found.m.bits = bitcast <$lanes x i1> %found.m to i$lanes
  %found.m.count = call i$lanes @llvm.ctpop.i$lanes(i$lanes %found.m.bits)
  %more.m = zext i$lanes %found.m.count to i64
  %kept.m.next = add i64 %kept.m, %more.m
  %end = call i64 @llvm.smin.i64(i64 %kept.m.next, i64 %room)
  %places.0 = insertelement $vector poison, $key %kept.m, i64 0
  %places.1 = shufflevector $vector %places.0, $vector poison, <$lanes x i32> zeroinitializer
  %places = add $vector %places.1, <$counted>
  %end.0 = insertelement $vector poison, $key %end, i64 0
  %ends = shufflevector $vector %end.0, $vector poison, <$lanes x i32> zeroinitializer
  %fits = icmp slt $vector %places, %ends
  %packed.m = call $vector @llvm.experimental.vector.compress.$suffix($vector %positions.m, <$lanes x i1> %found.m, $vector poison)
  %target.m = getelementptr $key, ptr %to, i64 %kept.m
  call void @llvm.masked.store.$suffix.p0($vector %packed.m, ptr %target.m, <$lanes x i1> %fits)
  %positions.m.next = add $vector %positions.m, splat ($key $lanes)
  %at.m.next = add i64 %at.m, $lanes
  br label %masked
rest:
  %i = phi i64 [ %at.m, %masked ], [ %i.next, %next ]
  %n = phi i64 [ %kept.m, %masked ], [ %n.next, %next ]
  %is_left = icmp ult i64 %i, %count
  br i1 %is_left, label %look, label %done
look:
  %place = getelementptr $element, ptr %from, i64 %i
  %value = load $element, ptr %place, align $element_bytes
  %part = and $element %value, %magnitude
  %is_some = icmp ne $element %part, 0
  %fits.one = icmp slt i64 %n, %room
  %writes = and i1 %is_some, %fits.one
  br i1 %writes, label %write, label %next
write:
  %one.target = getelementptr $key, ptr %to, i64 %n
  store $key %i, ptr %one.target, align $bytes
  br label %next
next:
  %one = zext i1 %is_some to i64
  %n.next = add i64 %n, %one
  %i.next = add i64 %i, 1
  br label %rest
done:
  store i64 %n, ptr %counts, align 8
  ret void
}

define internal <$lanes x i1> @weft.sort.nonzero$bits.$name(ptr %from, i64 %at, $elements %magnitudes) alwaysinline nounwind {
  %place = getelementptr $element, ptr %from, i64 %at
  %values = load $elements, ptr %place, align $element_bytes
  %parts = and $elements %values, %magnitudes
  %found = icmp ne $elements %parts, zeroinitializer
  ret <$lanes x i1> %found
}
