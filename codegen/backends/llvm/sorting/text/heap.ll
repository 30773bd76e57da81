define internal i64 @weft.sort.depth.$name(i64 %count) nounwind {
  %zeros = call i64 @llvm.ctlz.i64(i64 %count, i1 false)
  %bits = sub i64 64, %zeros
  %depth = shl i64 %bits, 1
  ret i64 %depth
}

define internal void @weft.sort.heap.$name($keys, i64 %count) noinline nounwind {
entry:
  %half = lshr i64 %count, 1
  br label %build
build:
  %left = phi i64 [ %half, %entry ], [ %root, %sift ]
  %is_heap = icmp eq i64 %left, 0
  br i1 %is_heap, label %take, label %sift
sift:
  %root = sub i64 %left, 1
  call void @weft.sort.sift.$name($keys, i64 %root, i64 %count)
  br label %build
take:
  %size = phi i64 [ %count, %build ], [ %last, %swap ]
  %some = icmp ugt i64 %size, 1
  br i1 %some, label %swap, label %done
swap:
  %last = sub i64 %size, 1
  call void @weft.sort.swap.$name($keys, i64 0, i64 %last)
  call void @weft.sort.sift.$name($keys, i64 0, i64 %last)
  br label %take
done:
  ret void
}

define internal void @weft.sort.sift.$name($keys, i64 %start, i64 %count) nounwind {
entry:
  br label %head
head:
  %root = phi i64 [ %start, %entry ], [ %child, %down ]
  %twice = shl i64 %root, 1
  %first = add i64 %twice, 1
  %second = add i64 %twice, 2
  %has_child = icmp ult i64 %first, %count
  br i1 %has_child, label %children, label %done
children:
  %has_second = icmp ult i64 %second, %count
  br i1 %has_second, label %both, label %chosen
both:
  %is_greater = call i1 @weft.sort.before.$name($keys, i64 %first, i64 %second)
  %greater = select i1 %is_greater, i64 %second, i64 %first
  br label %chosen
chosen:
  %child = phi i64 [ %first, %children ], [ %greater, %both ]
  %falls = call i1 @weft.sort.before.$name($keys, i64 %root, i64 %child)
  br i1 %falls, label %down, label %done
down:
  call void @weft.sort.swap.$name($keys, i64 %root, i64 %child)
  br label %head
done:
  ret void
}

define internal i1 @weft.sort.constant.$name(ptr %keys, i64 %count, $key %pivot) noinline nounwind {
entry:
  %first = insertelement $vector poison, $key %pivot, i64 0
  %pivots = shufflevector $vector %first, $vector poison, <$lanes x i32> zeroinitializer
  %last = sub i64 %count, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %more ]
  %is_last = icmp uge i64 %at, %last
  %from = select i1 %is_last, i64 %last, i64 %at
  %place = getelementptr $key, ptr %keys, i64 %from
  %vector = load $vector, ptr %place, align $bytes
  %differs = icmp ne $vector %vector, %pivots
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %other, label %more
more:
  %next = add i64 %at, $lanes
  br i1 %is_last, label %same, label %head
same:
  ret i1 true
other:
  ret i1 false
}
