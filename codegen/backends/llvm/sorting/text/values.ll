define void @weft.sort.values.$name(ptr %to, ptr %from, i64 %count, $key %negative, $key %other, $key %infinity) nounwind {
entry:
  %codes = alloca [8 x $key], align 64
  call void @weft.sort.codes.$name(ptr %codes, $key %negative, $key %other)
  call void @weft.sort.coded.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  call void @weft.sort.mend.$name(ptr %to, ptr %from, i64 %count, $key %infinity, ptr %codes)
  ret void
}

define internal void @weft.sort.codes.$name(ptr %codes, $key %negative, $key %other) noinline nounwind {
  %turns = icmp slt $key %negative, 0
  %above = select i1 %turns, $key %other, $key %negative
  %below = select i1 %turns, $key %negative, $key %other
  %size = mul i64 8, $bytes
  call void @llvm.memset.p0.i64(ptr %codes, i8 0, i64 %size, i1 false)
  %encode.1 = getelementptr $key, ptr %codes, i64 1
  %decode.0 = getelementptr $key, ptr %codes, i64 $decoding
  %decode.1 = getelementptr $key, ptr %decode.0, i64 1
  store $key %negative, ptr %codes, align $bytes
  store $key %other, ptr %encode.1, align $bytes
  store $key %above, ptr %decode.0, align $bytes
  store $key %below, ptr %decode.1, align $bytes
  ret void
}

define internal void @weft.sort.coded.$name(ptr %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %is_done = call i1 @weft.sort.is_done.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  br i1 %is_done, label %done, label %split
split:
  %sample = call <2 x $key> @weft.sort.sample.$name(ptr %from, i64 %count, ptr %codes)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %below = call i64 @weft.sort.encode.$name(ptr %to, ptr %from, i64 %count, $key %pivot, ptr %codes)
  %depth = call i64 @weft.sort.depth.$name(i64 %count)
  call void @weft.sort.parts.$name(ptr %to, i64 %below, i64 %depth, ptr %codes)
  %above = getelementptr $key, ptr %to, i64 %below
  %rest = sub i64 %count, %below
  call void @weft.sort.parts.$name(ptr %above, i64 %rest, i64 %depth, ptr %codes)
  br label %done
done:
  ret void
}

define internal void @weft.sort.few.$name(ptr %keys, i64 %count, ptr %codes) nounwind {
  %some = icmp ule i64 %count, $few_keys
  br i1 %some, label %few, label %many
few:
  call void @weft.sort.block$few.$name(ptr %keys, i64 %count, ptr %codes)
  ret void
many:
  call void @weft.sort.block$many.$name(ptr %keys, i64 %count, ptr %codes)
  ret void
}

define internal void @weft.sort.parts.$name(ptr %keys, i64 %count, i64 %depth, ptr %codes) noinline nounwind {
entry:
  %decode = getelementptr $key, ptr %codes, i64 $decoding
  %none = getelementptr $key, ptr %codes, i64 $none
  br label %head
head:
  %first = phi i64 [ 0, %entry ], [ %above, %parted ], [ %unequal, %equal ]
  %size = phi i64 [ %count, %entry ], [ %rest, %parted ], [ %others, %equal ]
  %left = phi i64 [ %depth, %entry ], [ %less, %parted ], [ %left, %equal ]
  %from = getelementptr $key, ptr %keys, i64 %first
  %is_few = icmp ule i64 %size, $many_keys
  br i1 %is_few, label %few, label %many
few:
  call void @weft.sort.few.$name(ptr %from, i64 %size, ptr %decode)
  ret void
many:
  %is_deep = icmp eq i64 %left, 0
  br i1 %is_deep, label %heap, label %part
heap:
  call void @weft.sort.heap.$name(ptr %from, i64 %size)
  br label %ordered
part:
  %sample = call <2 x $key> @weft.sort.sample.$name(ptr %from, i64 %size, ptr %none)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %spread = extractelement <2 x $key> %sample, i64 1
  %is_flat = icmp eq $key %spread, 0
  br i1 %is_flat, label %look, label %split
look:
  %is_constant = call i1 @weft.sort.constant.$name(ptr %from, i64 %size, $key %pivot)
  br i1 %is_constant, label %ordered, label %split
split:
  %below = call i64 @weft.sort.part.$name(ptr %from, i64 %size, $key %pivot)
  %is_least = icmp eq i64 %below, 0
  br i1 %is_least, label %least, label %parted
least:
  %next = add $key %pivot, 1
  %is_greatest = icmp eq $key %next, 0
  br i1 %is_greatest, label %ordered, label %equal
equal:
  %same = call i64 @weft.sort.part.$name(ptr %from, i64 %size, $key %next)
  call void @weft.sort.recode.$name(ptr %from, ptr %from, i64 %same, ptr %decode)
  %unequal = add i64 %first, %same
  %others = sub i64 %size, %same
  br label %head
ordered:
  call void @weft.sort.recode.$name(ptr %from, ptr %from, i64 %size, ptr %decode)
  ret void
parted:
  %less = sub i64 %left, 1
  call void @weft.sort.parts.$name(ptr %from, i64 %below, i64 %less, ptr %codes)
  %above = add i64 %first, %below
  %rest = sub i64 %size, %below
  br label %head
}

define internal $key @weft.sort.key.$name($key %element, ptr %codes) alwaysinline nounwind {
  %is_negative = icmp slt $key %element, 0
  %other_place = getelementptr $key, ptr %codes, i64 1
  %negative = load $key, ptr %codes, align $bytes
  %other = load $key, ptr %other_place, align $bytes
  %code = select i1 %is_negative, $key %negative, $key %other
  %key = xor $key %element, %code
  ret $key %key
}

define internal $vector @weft.sort.codes_of.$name(ptr %code) alwaysinline nounwind {
  %scalar = load $key, ptr %code, align $bytes
  %first = insertelement $vector poison, $key %scalar, i64 0
  %vector = shufflevector $vector %first, $vector poison, <$lanes x i32> zeroinitializer
  ret $vector %vector
}

define internal $vector @weft.sort.keys_at.$name(ptr %place, $vector %negative, $vector %other) alwaysinline nounwind {
  %elements = load $vector, ptr %place, align $bytes
  %found = call $vector @weft.sort.coded_of.$name($vector %elements, $vector %negative, $vector %other)
  ret $vector %found
}

define internal $vector @weft.sort.coded_of.$name($vector %elements, $vector %negative, $vector %other) alwaysinline nounwind {
  %is_negative = icmp slt $vector %elements, zeroinitializer
  %code = select <$lanes x i1> %is_negative, $vector %negative, $vector %other
  %found = xor $vector %elements, %code
  ret $vector %found
}

define internal void @weft.sort.recode.$name(ptr %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %other_place = getelementptr $key, ptr %codes, i64 1
  %negative = call $vector @weft.sort.codes_of.$name(ptr %codes)
  %other = call $vector @weft.sort.codes_of.$name(ptr %other_place)
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %vectors ]
  %place = getelementptr $key, ptr %from, i64 %at
  %target = getelementptr $key, ptr %to, i64 %at
  %next = add i64 %at, $lanes
  %is_whole = icmp ule i64 %next, %count
  br i1 %is_whole, label %vectors, label %rest
vectors:
  %elements = call $vector @weft.sort.keys_at.$name(ptr %place, $vector %negative, $vector %other)
  store $vector %elements, ptr %target, align $bytes
  br label %head
rest:
  %left = sub i64 %count, %at
  %mask = call <$lanes x i1> @weft.sort.first_lanes.$name(i64 %left)
  %last = call $vector @llvm.masked.load.$suffix.p0(ptr align $bytes %place, <$lanes x i1> %mask, $vector zeroinitializer)
  %last_elements = call $vector @weft.sort.coded_of.$name($vector %last, $vector %negative, $vector %other)
  call void @llvm.masked.store.$suffix.p0($vector %last_elements, ptr align $bytes %target, <$lanes x i1> %mask)
  ret void
}

define internal <2 x $key> @weft.sort.sample.$name(ptr %keys, i64 %count, ptr %codes) nounwind {
  %is_large = icmp uge i64 %count, $sampled
  br i1 %is_large, label %large, label %small
large:
  %middle = call <2 x $key> @weft.sort.middle.$name(ptr %keys, i64 %count, ptr %codes)
  ret <2 x $key> %middle
small:
  %pivot = call <2 x $key> @weft.sort.pivot.$name(ptr %keys, i64 %count, ptr %codes)
  ret <2 x $key> %pivot
}

define internal <2 x $key> @weft.sort.middle.$name(ptr %keys, i64 %count, ptr %codes) noinline nounwind {
entry:
  %sample = alloca [$few_keys x $key], align 64
  %none = alloca [2 x $key], align 64
  store [2 x $key] zeroinitializer, ptr %none, align $bytes
  %distance = udiv i64 %count, $few_keys
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %head ]
  %index = mul i64 %at, %distance
  %key = call $key @weft.sort.key_at.$name(ptr %keys, i64 %index, ptr %codes)
  %target = getelementptr $key, ptr %sample, i64 %at
  store $key %key, ptr %target, align $bytes
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, $few_keys
  br i1 %more, label %head, label %found
found:
  call void @weft.sort.few.$name(ptr %sample, i64 $few_keys, ptr %none)
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

define i32 @weft.sort.values.shared.$name(ptr %to, ptr %from, i64 %count, $key %negative, $key %other, $key %infinity, ptr %runner, ptr %frame, i64 %limit) nounwind {
entry:
  %codes = alloca [8 x $key], align 64
  %context = alloca [$words x i64], align 64
  call void @weft.sort.codes.$name(ptr %codes, $key %negative, $key %other)
  %is_done = call i1 @weft.sort.is_done.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  br i1 %is_done, label %mend, label %share
share:
  %sample = call <2 x $key> @weft.sort.sample.$name(ptr %from, i64 %count, ptr %codes)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %below = call i64 @weft.sort.encode.$name(ptr %to, ptr %from, i64 %count, $key %pivot, ptr %codes)
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 $context_bytes, i1 false)
  store ptr %frame, ptr %context, align 8
  %earliest = getelementptr i64, ptr %context, i64 2
  store i64 9223372036854775807, ptr %earliest, align 8
  %keys_word = getelementptr i64, ptr %context, i64 4
  store ptr %to, ptr %keys_word, align 8
  %codes_word = getelementptr i64, ptr %context, i64 5
  store ptr %codes, ptr %codes_word, align 8
  %end_word = getelementptr i64, ptr %context, i64 $end_word
  store i64 %count, ptr %end_word, align 8
  %middle_index = add i64 $half_parts, 9
  %middle_word = getelementptr i64, ptr %context, i64 %middle_index
  store i64 %below, ptr %middle_word, align 8
  br label %level
level:
  %stride = phi i64 [ $half_parts, %share ], [ %half, %split ]
  %is_split = icmp eq i64 %stride, 1
  br i1 %is_split, label %sort, label %split
split:
  %half = lshr i64 %stride, 1
  %stride_word = getelementptr i64, ptr %context, i64 8
  store i64 %stride, ptr %stride_word, align 8
  %tasks = udiv i64 $parts, %stride
  call void %runner(ptr @weft.sort.halves.$name, ptr %context, i64 0, i64 %tasks, i64 %limit)
  br label %level
sort:
  call void %runner(ptr @weft.sort.pieces.$name, ptr %context, i64 0, i64 $parts, i64 %limit)
  %status_word = getelementptr i64, ptr %context, i64 3
  %status = load i64, ptr %status_word, align 8
  %short = trunc i64 %status to i32
  %is_sorted = icmp eq i32 %short, 0
  br i1 %is_sorted, label %mend, label %failed
mend:
  call void @weft.sort.mend.$name(ptr %to, ptr %from, i64 %count, $key %infinity, ptr %codes)
  ret i32 0
failed:
  ret i32 %short
}

define internal void @weft.sort.halves.$name(ptr %context, i64 %first, i64 %end) nounwind {
entry:
  %stride_word = getelementptr i64, ptr %context, i64 8
  %stride = load i64, ptr %stride_word, align 8
  %half = lshr i64 %stride, 1
  %keys_word = getelementptr i64, ptr %context, i64 4
  %keys = load ptr, ptr %keys_word, align 8
  %codes_word = getelementptr i64, ptr %context, i64 5
  %codes = load ptr, ptr %codes_word, align 8
  %none = getelementptr $key, ptr %codes, i64 $none
  br label %head
head:
  %at = phi i64 [ %first, %entry ], [ %next, %known ]
  %more = icmp slt i64 %at, %end
  br i1 %more, label %piece, label %done
piece:
  %low_part = mul i64 %at, %stride
  %high_part = add i64 %low_part, %stride
  %low_index = add i64 %low_part, 9
  %high_index = add i64 %high_part, 9
  %low_word = getelementptr i64, ptr %context, i64 %low_index
  %high_word = getelementptr i64, ptr %context, i64 %high_index
  %low = load i64, ptr %low_word, align 8
  %high = load i64, ptr %high_word, align 8
  %size = sub i64 %high, %low
  %is_large = icmp uge i64 %size, $least
  br i1 %is_large, label %split, label %known
split:
  %from = getelementptr $key, ptr %keys, i64 %low
  %sample = call <2 x $key> @weft.sort.middle.$name(ptr %from, i64 %size, ptr %none)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %below = call i64 @weft.sort.part.$name(ptr %from, i64 %size, $key %pivot)
  br label %known
known:
  %less = phi i64 [ 0, %piece ], [ %below, %split ]
  %middle = add i64 %low, %less
  %middle_index = add i64 %low_index, %half
  %middle_word = getelementptr i64, ptr %context, i64 %middle_index
  store i64 %middle, ptr %middle_word, align 8
  %next = add i64 %at, 1
  br label %head
done:
  ret void
}

define internal void @weft.sort.pieces.$name(ptr %context, i64 %first, i64 %end) nounwind {
entry:
  %keys_word = getelementptr i64, ptr %context, i64 4
  %keys = load ptr, ptr %keys_word, align 8
  %codes_word = getelementptr i64, ptr %context, i64 5
  %codes = load ptr, ptr %codes_word, align 8
  br label %head
head:
  %at = phi i64 [ %first, %entry ], [ %next, %piece ]
  %more = icmp slt i64 %at, %end
  br i1 %more, label %piece, label %done
piece:
  %low_index = add i64 %at, 9
  %high_index = add i64 %at, 10
  %low_word = getelementptr i64, ptr %context, i64 %low_index
  %high_word = getelementptr i64, ptr %context, i64 %high_index
  %low = load i64, ptr %low_word, align 8
  %high = load i64, ptr %high_word, align 8
  %size = sub i64 %high, %low
  %from = getelementptr $key, ptr %keys, i64 %low
  %depth = call i64 @weft.sort.depth.$name(i64 %size)
  call void @weft.sort.parts.$name(ptr %from, i64 %size, i64 %depth, ptr %codes)
  %next = add i64 %at, 1
  br label %head
done:
  ret void
}
