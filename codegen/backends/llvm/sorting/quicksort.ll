define void @weft.sort.$name(ptr %keys, ptr %spare, i64 %count) nounwind {
  %depth = call i64 @weft.sort.depth.$name(i64 %count)
  call void @weft.sort.parts.$name(ptr %keys, ptr %spare, i64 %count, i64 %depth)
  ret void
}

define internal i64 @weft.sort.depth.$name(i64 %count) nounwind {
  %zeros = call i64 @llvm.ctlz.i64(i64 %count, i1 false)
  %bits = sub i64 64, %zeros
  %depth = shl i64 %bits, 1
  ret i64 %depth
}

define internal void @weft.sort.few.$name(ptr %keys, i64 %count) nounwind {
  %some = icmp ule i64 %count, $few_keys
  br i1 %some, label %few, label %many
few:
  call void @weft.sort.block$few.$name(ptr %keys, i64 %count)
  ret void
many:
  call void @weft.sort.block$many.$name(ptr %keys, i64 %count)
  ret void
}

define internal void @weft.sort.parts.$name(ptr %keys, ptr %spare, i64 %count, i64 %depth) noinline nounwind {
entry:
  br label %head
head:
  %from = phi ptr [ %keys, %entry ], [ %above, %parted ], [ %unequal, %equal ]
  %size = phi i64 [ %count, %entry ], [ %rest, %parted ], [ %others, %equal ]
  %left = phi i64 [ %depth, %entry ], [ %less, %parted ], [ %left, %equal ]
  %is_few = icmp ule i64 %size, $many_keys
  br i1 %is_few, label %few, label %many
few:
  call void @weft.sort.few.$name(ptr %from, i64 %size)
  ret void
many:
  %is_deep = icmp eq i64 %left, 0
  br i1 %is_deep, label %heap, label %part
heap:
  call void @weft.sort.heap.$name(ptr %from, i64 %size)
  ret void
part:
  %sample = call <2 x $key> @weft.sort.pivot.$name(ptr %from, i64 %size)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %spread = extractelement <2 x $key> %sample, i64 1
  %is_flat = icmp eq $key %spread, 0
  br i1 %is_flat, label %look, label %split
look:
  %is_constant = call i1 @weft.sort.constant.$name(ptr %from, i64 %size, $key %pivot)
  br i1 %is_constant, label %done, label %split
split:
  %below = call i64 @weft.sort.part.$name(ptr %from, ptr %spare, i64 %size, $key %pivot)
  %is_least = icmp eq i64 %below, 0
  br i1 %is_least, label %least, label %parted
least:
  %next = add $key %pivot, 1
  %is_greatest = icmp eq $key %next, 0
  br i1 %is_greatest, label %done, label %equal
equal:
  %same = call i64 @weft.sort.part.$name(ptr %from, ptr %spare, i64 %size, $key %next)
  %unequal = getelementptr $key, ptr %from, i64 %same
  %others = sub i64 %size, %same
  br label %head
done:
  ret void
parted:
  %less = sub i64 %left, 1
  call void @weft.sort.parts.$name(ptr %from, ptr %spare, i64 %below, i64 %less)
  %above = getelementptr $key, ptr %from, i64 %below
  %rest = sub i64 %size, %below
  br label %head
}

define void @weft.select.$name(ptr %keys, ptr %spare, i64 %count, i64 %rank) nounwind {
entry:
  %depth = call i64 @weft.sort.depth.$name(i64 %count)
  br label %head
head:
  %from = phi ptr [ %keys, %entry ], [ %kept, %parted ], [ %unequal, %beyond ]
  %size = phi i64 [ %count, %entry ], [ %kept_size, %parted ], [ %others, %beyond ]
  %at = phi i64 [ %rank, %entry ], [ %kept_rank, %parted ], [ %rank_beyond, %beyond ]
  %left = phi i64 [ %depth, %entry ], [ %less, %parted ], [ %left, %beyond ]
  %is_few = icmp ule i64 %size, $many_keys
  br i1 %is_few, label %few, label %many
few:
  call void @weft.sort.few.$name(ptr %from, i64 %size)
  ret void
many:
  %is_deep = icmp eq i64 %left, 0
  br i1 %is_deep, label %heap, label %part
heap:
  call void @weft.sort.heap.$name(ptr %from, i64 %size)
  ret void
part:
  %sample = call <2 x $key> @weft.sort.pivot.$name(ptr %from, i64 %size)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %spread = extractelement <2 x $key> %sample, i64 1
  %is_flat = icmp eq $key %spread, 0
  br i1 %is_flat, label %look, label %split
look:
  %is_constant = call i1 @weft.sort.constant.$name(ptr %from, i64 %size, $key %pivot)
  br i1 %is_constant, label %done, label %split
split:
  %below = call i64 @weft.sort.part.$name(ptr %from, ptr %spare, i64 %size, $key %pivot)
  %is_least = icmp eq i64 %below, 0
  br i1 %is_least, label %least, label %parted
least:
  %next = add $key %pivot, 1
  %is_greatest = icmp eq $key %next, 0
  br i1 %is_greatest, label %done, label %equal
equal:
  %same = call i64 @weft.sort.part.$name(ptr %from, ptr %spare, i64 %size, $key %next)
  %is_same = icmp ult i64 %at, %same
  br i1 %is_same, label %done, label %beyond
beyond:
  %unequal = getelementptr $key, ptr %from, i64 %same
  %others = sub i64 %size, %same
  %rank_beyond = sub i64 %at, %same
  br label %head
done:
  ret void
parted:
  %less = sub i64 %left, 1
  %is_below = icmp ult i64 %at, %below
  %above = getelementptr $key, ptr %from, i64 %below
  %rest = sub i64 %size, %below
  %rank_above = sub i64 %at, %below
  %kept = select i1 %is_below, ptr %from, ptr %above
  %kept_size = select i1 %is_below, i64 %below, i64 %rest
  %kept_rank = select i1 %is_below, i64 %at, i64 %rank_above
  br label %head
}

define internal void @weft.sort.heap.$name(ptr %keys, i64 %count) noinline nounwind {
entry:
  %half = lshr i64 %count, 1
  br label %build
build:
  %left = phi i64 [ %half, %entry ], [ %root, %sift ]
  %is_heap = icmp eq i64 %left, 0
  br i1 %is_heap, label %take, label %sift
sift:
  %root = sub i64 %left, 1
  call void @weft.sort.sift.$name(ptr %keys, i64 %root, i64 %count)
  br label %build
take:
  %size = phi i64 [ %count, %build ], [ %last, %swap ]
  %some = icmp ugt i64 %size, 1
  br i1 %some, label %swap, label %done
swap:
  %last = sub i64 %size, 1
  %place = getelementptr $key, ptr %keys, i64 %last
  %greatest = load $key, ptr %keys, align $bytes
  %other = load $key, ptr %place, align $bytes
  store $key %greatest, ptr %place, align $bytes
  store $key %other, ptr %keys, align $bytes
  call void @weft.sort.sift.$name(ptr %keys, i64 0, i64 %last)
  br label %take
done:
  ret void
}

define internal void @weft.sort.sift.$name(ptr %keys, i64 %start, i64 %count) nounwind {
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
  %first_place = getelementptr $key, ptr %keys, i64 %first
  %first_key = load $key, ptr %first_place, align $bytes
  %has_second = icmp ult i64 %second, %count
  br i1 %has_second, label %both, label %chosen
both:
  %second_place = getelementptr $key, ptr %keys, i64 %second
  %second_key = load $key, ptr %second_place, align $bytes
  %is_greater = icmp ult $key %first_key, %second_key
  %greater = select i1 %is_greater, i64 %second, i64 %first
  %greater_key = select i1 %is_greater, $key %second_key, $key %first_key
  br label %chosen
chosen:
  %child = phi i64 [ %first, %children ], [ %greater, %both ]
  %child_key = phi $key [ %first_key, %children ], [ %greater_key, %both ]
  %root_place = getelementptr $key, ptr %keys, i64 %root
  %root_key = load $key, ptr %root_place, align $bytes
  %falls = icmp ult $key %root_key, %child_key
  br i1 %falls, label %down, label %done
down:
  %child_place = getelementptr $key, ptr %keys, i64 %child
  store $key %child_key, ptr %root_place, align $bytes
  store $key %root_key, ptr %child_place, align $bytes
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
