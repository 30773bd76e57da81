define i32 @weft.sort.shared.$name($keys, $spare, i64 %count, ptr %runner, ptr %frame, i64 %limit) nounwind {
entry:
  %context = alloca [$words x i64], align 64
  %run = call i64 @weft.sort.ascends.$name(ptr %keys, i64 %count)
  %ascends = icmp eq i64 %run, %count
  br i1 %ascends, label %done, label %turned
turned:
  %fallen = call i64 @weft.sort.descends.$name(ptr %keys, i64 %count)
  %descends = icmp eq i64 %fallen, %count
  br i1 %descends, label %reverse, label %share
reverse:
  call void @weft.sort.reverse.$name($keys, i64 %count)
  ret i32 0
share:
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 $context_bytes, i1 false)
  store ptr %frame, ptr %context, align 8
  %earliest = getelementptr i64, ptr %context, i64 2
  store i64 9223372036854775807, ptr %earliest, align 8
  %keys_word = getelementptr i64, ptr %context, i64 4
  store ptr %keys, ptr %keys_word, align 8
  %spare_word = getelementptr i64, ptr %context, i64 5
  store ptr %spare, ptr %spare_word, align 8
$store_positions  %end_word = getelementptr i64, ptr %context, i64 $end_word
  store i64 %count, ptr %end_word, align 8
  br label %level
level:
  %stride = phi i64 [ $parts, %share ], [ %half, %split ]
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
  ret i32 %short
done:
  ret i32 0
}

define internal void @weft.sort.halves.$name(ptr %context, i64 %first, i64 %end) nounwind {
entry:
  %stride_word = getelementptr i64, ptr %context, i64 8
  %stride = load i64, ptr %stride_word, align 8
  %half = lshr i64 %stride, 1
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
$locate  %sample = call <2 x $key> @weft.sort.middle.$name(ptr %from, i64 %size)
  %pivot = extractelement <2 x $key> %sample, i64 0
  %below = call i64 @weft.sort.part.$name($from, $beside, i64 %size, $key %pivot)
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
$locate  call void @weft.sort.$name($from, $beside, i64 %size)
  %next = add i64 %at, 1
  br label %head
done:
  ret void
}
