define void @weft.sort.$name($keys, $spare, i64 %count) nounwind {
entry:
  %is_few = icmp ule i64 %count, $many_keys
  br i1 %is_few, label %sort, label %look
look:
  %run = call i64 @weft.sort.ascends.$name(ptr %keys, i64 %count)
  %ascends = icmp eq i64 %run, %count
  br i1 %ascends, label %done, label %turned
turned:
  %fallen = call i64 @weft.sort.descends.$name(ptr %keys, i64 %count)
  %descends = icmp eq i64 %fallen, %count
  br i1 %descends, label %reverse, label %ends
reverse:
  call void @weft.sort.reverse.$name($keys, i64 %count)
  ret void
ends:
  %last = call i64 @weft.sort.last_run.$name(ptr %keys, i64 %count)
  %is_merged = call i1 @weft.sort.runs.$name($keys, $spare, i64 %count, i64 %run, i64 %last)
  br i1 %is_merged, label %done, label %sort
sort:
  %depth = call i64 @weft.sort.depth.$name(i64 %count)
  call void @weft.sort.parts.$name($keys, $spare, i64 %count, i64 %depth)
  ret void
done:
  ret void
}

define internal void @weft.sort.few.$name($keys, i64 %count) nounwind {
  %some = icmp ule i64 %count, $few_keys
  br i1 %some, label %few, label %many
few:
  call void @weft.sort.block$few.$name($keys, i64 %count)
  ret void
many:
  call void @weft.sort.block$many.$name($keys, i64 %count)
  ret void
}

define internal void @weft.sort.parts.$name($keys, $spare, i64 %count, i64 %depth) noinline nounwind {
entry:
  br label %head
head:
  %first = phi i64 [ 0, %entry ], [ %above, %parted ], [ %unequal, %equal ]
  %size = phi i64 [ %count, %entry ], [ %rest, %parted ], [ %others, %equal ]
  %left = phi i64 [ %depth, %entry ], [ %less, %parted ], [ %left, %equal ]
  %from = getelementptr $key, ptr %keys, i64 %first
$find_positions  %is_few = icmp ule i64 %size, $many_keys
  br i1 %is_few, label %few, label %many
few:
  call void @weft.sort.few.$name($from, i64 %size)
  ret void
many:
  %is_deep = icmp eq i64 %left, 0
  br i1 %is_deep, label %heap, label %part
heap:
  call void @weft.sort.heap.$name($from, i64 %size)
  ret void
part:
  %sample = call <2 x $key> @weft.sort.sample.$name(ptr %from, i64 %size)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %spread = extractelement <2 x $key> %sample, i64 1
  %is_flat = icmp eq $key %spread, 0
  br i1 %is_flat, label %look, label %split
look:
  %is_constant = call i1 @weft.sort.constant.$name(ptr %from, i64 %size, $key %pivot)
  br i1 %is_constant, label %done, label %split
split:
  %below = call i64 @weft.sort.part.$name($from, $spare, i64 %size, $key %pivot)
  %is_least = icmp eq i64 %below, 0
  br i1 %is_least, label %least, label %parted
least:
  %next = add $key %pivot, 1
  %is_greatest = icmp eq $key %next, 0
  br i1 %is_greatest, label %done, label %equal
equal:
  %same = call i64 @weft.sort.part.$name($from, $spare, i64 %size, $key %next)
  %unequal = add i64 %first, %same
  %others = sub i64 %size, %same
  br label %head
done:
  ret void
parted:
  %less = sub i64 %left, 1
  call void @weft.sort.parts.$name($from, $spare, i64 %below, i64 %less)
  %above = add i64 %first, %below
  %rest = sub i64 %size, %below
  br label %head
}

define void @weft.select.$name($keys, $spare, i64 %count, i64 %rank) nounwind {
entry:
  %depth = call i64 @weft.sort.depth.$name(i64 %count)
  br label %head
head:
  %first = phi i64 [ 0, %entry ], [ %kept, %parted ], [ %unequal, %beyond ]
  %size = phi i64 [ %count, %entry ], [ %kept_size, %parted ], [ %others, %beyond ]
  %at = phi i64 [ %rank, %entry ], [ %kept_rank, %parted ], [ %rank_beyond, %beyond ]
  %left = phi i64 [ %depth, %entry ], [ %less, %parted ], [ %left, %beyond ]
  %from = getelementptr $key, ptr %keys, i64 %first
$find_positions  %is_few = icmp ule i64 %size, $many_keys
  br i1 %is_few, label %few, label %many
few:
  call void @weft.sort.few.$name($from, i64 %size)
  ret void
many:
  %is_deep = icmp eq i64 %left, 0
  br i1 %is_deep, label %heap, label %part
heap:
  call void @weft.sort.heap.$name($from, i64 %size)
  ret void
part:
  %sample = call <2 x $key> @weft.sort.sample.$name(ptr %from, i64 %size)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %spread = extractelement <2 x $key> %sample, i64 1
  %is_flat = icmp eq $key %spread, 0
  br i1 %is_flat, label %look, label %split
look:
  %is_constant = call i1 @weft.sort.constant.$name(ptr %from, i64 %size, $key %pivot)
  br i1 %is_constant, label %done, label %split
split:
  %below = call i64 @weft.sort.part.$name($from, $spare, i64 %size, $key %pivot)
  %is_least = icmp eq i64 %below, 0
  br i1 %is_least, label %least, label %parted
least:
  %next = add $key %pivot, 1
  %is_greatest = icmp eq $key %next, 0
  br i1 %is_greatest, label %done, label %equal
equal:
  %same = call i64 @weft.sort.part.$name($from, $spare, i64 %size, $key %next)
  %is_same = icmp ult i64 %at, %same
  br i1 %is_same, label %done, label %beyond
beyond:
  %unequal = add i64 %first, %same
  %others = sub i64 %size, %same
  %rank_beyond = sub i64 %at, %same
  br label %head
done:
  ret void
parted:
  %less = sub i64 %left, 1
  %is_below = icmp ult i64 %at, %below
  %above = add i64 %first, %below
  %rest = sub i64 %size, %below
  %rank_above = sub i64 %at, %below
  %kept = select i1 %is_below, i64 %first, i64 %above
  %kept_size = select i1 %is_below, i64 %below, i64 %rest
  %kept_rank = select i1 %is_below, i64 %at, i64 %rank_above
  br label %head
}

define internal <2 x $key> @weft.sort.sample.$name(ptr %keys, i64 %count) nounwind {
  %is_large = icmp uge i64 %count, $sampled
  br i1 %is_large, label %large, label %small
large:
  %middle = call <2 x $key> @weft.sort.middle.$name(ptr %keys, i64 %count)
  ret <2 x $key> %middle
small:
  %pivot = call <2 x $key> @weft.sort.pivot.$name(ptr %keys, i64 %count)
  ret <2 x $key> %pivot
}

define internal <2 x $key> @weft.sort.middle.$name(ptr %keys, i64 %count) noinline nounwind {
entry:
  %sample = alloca [$few_keys x $key], align 64
  %sample_positions = alloca [$few_keys x i32], align 64
  call void @llvm.memset.p0.i64(ptr %sample_positions, i8 0, i64 $sample_bytes, i1 false)
  %distance = udiv i64 %count, $few_keys
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %head ]
  %index = mul i64 %at, %distance
  %place = getelementptr $key, ptr %keys, i64 %index
  %key = load $key, ptr %place, align $bytes
  %target = getelementptr $key, ptr %sample, i64 %at
  store $key %key, ptr %target, align $bytes
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, $few_keys
  br i1 %more, label %head, label %found
found:
  call void @weft.sort.few.$name($sample, i64 $few_keys)
  %half = getelementptr $key, ptr %sample, i64 $half_sample
  %median = load $key, ptr %half, align $bytes
  %last = getelementptr $key, ptr %sample, i64 $last_sample
  %least = load $key, ptr %sample, align $bytes
  %greatest = load $key, ptr %last, align $bytes
  %spread = sub $key %greatest, %least
  %is_least = icmp eq $key %median, %least
  %is_spread = icmp ne $key %spread, 0
  %beyond = and i1 %is_least, %is_spread
  %step = zext i1 %beyond to $key
  %pivot = add $key %median, %step
  %found.0 = insertelement <2 x $key> poison, $key %pivot, i64 0
  %found.1 = insertelement <2 x $key> %found.0, $key %spread, i64 1
  ret <2 x $key> %found.1
}
