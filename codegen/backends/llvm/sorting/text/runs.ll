define internal i64 @weft.sort.last_run.$name(ptr %keys, i64 %count) noinline nounwind {
entry:
  %pairs = sub i64 %count, 1
  br label %head
head:
  %end = phi i64 [ %pairs, %entry ], [ %from, %more ]
  %before = sub i64 %end, $lanes
  %is_first = icmp sle i64 %before, 0
  %from = select i1 %is_first, i64 0, i64 %before
  %after = add i64 %from, 1
  %place = getelementptr $key, ptr %keys, i64 %from
  %place_after = getelementptr $key, ptr %keys, i64 %after
  %vector = load $vector, ptr %place, align $bytes
  %vector_after = load $vector, ptr %place_after, align $bytes
  %differs = icmp ugt $vector %vector, %vector_after
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %other, label %more
more:
  br i1 %is_first, label %whole, label %head
whole:
  ret i64 0
other:
  %zeros = call i$lanes @llvm.ctlz.i$lanes(i$lanes %bits, i1 true)
  %wide = zext i$lanes %zeros to i64
  %lane = sub i64 $lanes, %wide
  %start = add i64 %from, %lane
  ret i64 %start
}

define internal i1 @weft.sort.runs.$name($keys, $spare, i64 %count, i64 %run, i64 %last) nounwind {
entry:
  %between = sub i64 %last, %run
  %few = udiv i64 %count, $few_share
  %is_few = icmp ule i64 %between, %few
  br i1 %is_few, label %look, label %no
look:
  %some = icmp ne i64 %between, 0
  br i1 %some, label %middle, label %ends
middle:
  %first = add i64 %run, 0
  %from = getelementptr $key, ptr %keys, i64 %first
$find_positions  call void @weft.sort.$name($from, $spare, i64 %between)
  %is_merged = call i1 @weft.sort.merge.$name($keys, $spare, i64 %run, i64 %last)
  br i1 %is_merged, label %ends, label %no
ends:
  %is_whole = call i1 @weft.sort.merge.$name($keys, $spare, i64 %last, i64 %count)
  ret i1 %is_whole
no:
  ret i1 false
}

define internal i64 @weft.sort.bound.$name(ptr %keys, i64 %low, i64 %high, $key %key, i1 %is_after) noinline nounwind {
entry:
  br label %head
head:
  %from = phi i64 [ %low, %entry ], [ %next_from, %step ]
  %end = phi i64 [ %high, %entry ], [ %next_end, %step ]
  %some = icmp ult i64 %from, %end
  br i1 %some, label %step, label %done
step:
  %sum = add i64 %from, %end
  %middle = lshr i64 %sum, 1
  %place = getelementptr $key, ptr %keys, i64 %middle
  %other = load $key, ptr %place, align $bytes
  %less = icmp ult $key %other, %key
  %same = icmp eq $key %other, %key
  %same_after = and i1 %same, %is_after
  %is_before = or i1 %less, %same_after
  %after = add i64 %middle, 1
  %next_from = select i1 %is_before, i64 %after, i64 %from
  %next_end = select i1 %is_before, i64 %end, i64 %middle
  br label %head
done:
  ret i64 %from
}

define internal i1 @weft.sort.merge.$name($keys, $spare, i64 %middle, i64 %count) noinline nounwind {
entry:
  %right_place = getelementptr $key, ptr %keys, i64 %middle
  %right_key = load $key, ptr %right_place, align $bytes
  %before = sub i64 %middle, 1
  %left_place = getelementptr $key, ptr %keys, i64 %before
  %left_key = load $key, ptr %left_place, align $bytes
  %start = call i64 @weft.sort.bound.$name(ptr %keys, i64 0, i64 %middle, $key %right_key, i1 true)
  %end = call i64 @weft.sort.bound.$name(ptr %keys, i64 %middle, i64 %count, $key %left_key, i1 false)
  %size = sub i64 %middle, %start
  %others = sub i64 %end, %middle
  %few = udiv i64 %count, $few_share
  %is_right = icmp ule i64 %others, %few
  br i1 %is_right, label %rights, label %left
rights:
  call void @weft.sort.copy.$name($spare, i64 0, $keys, i64 %middle, i64 %others)
  br label %right
right:
  %left_rights = phi i64 [ %others, %rights ], [ %less_rights, %put_right ]
  %edge = phi i64 [ %middle, %rights ], [ %to_right, %put_right ]
  %more_rights = icmp ne i64 %left_rights, 0
  br i1 %more_rights, label %put_right, label %done
put_right:
  %less_rights = sub i64 %left_rights, 1
  %put.place = getelementptr $key, ptr %spare, i64 %less_rights
  %put.key = load $key, ptr %put.place, align $bytes
  %to_right = call i64 @weft.sort.bound.$name(ptr %keys, i64 %start, i64 %edge, $key %put.key, i1 true)
  %block = sub i64 %edge, %to_right
  %moved = add i64 %to_right, %left_rights
  call void @weft.sort.shift.$name($keys, i64 %moved, i64 %to_right, i64 %block)
  %hole = sub i64 %moved, 1
  call void @weft.sort.copy.$name($keys, i64 %hole, $spare, i64 %less_rights, i64 1)
  br label %right
left:
  %is_left = icmp ule i64 %size, %few
  br i1 %is_left, label %lefts, label %both
lefts:
  call void @weft.sort.copy.$name($spare, i64 0, $keys, i64 %start, i64 %size)
  br label %next
next:
  %put = phi i64 [ 0, %lefts ], [ %put_next, %put_left ]
  %from_right = phi i64 [ %middle, %lefts ], [ %right_next, %put_left ]
  %more_lefts = icmp ult i64 %put, %size
  br i1 %more_lefts, label %put_left, label %done
put_left:
  %left.place = getelementptr $key, ptr %spare, i64 %put
  %left.key = load $key, ptr %left.place, align $bytes
  %right_next = call i64 @weft.sort.bound.$name(ptr %keys, i64 %from_right, i64 %end, $key %left.key, i1 false)
  %block_left = sub i64 %right_next, %from_right
  %waiting = sub i64 %size, %put
  %to_left = sub i64 %from_right, %waiting
  call void @weft.sort.shift.$name($keys, i64 %to_left, i64 %from_right, i64 %block_left)
  %hole_left = sub i64 %right_next, %waiting
  call void @weft.sort.copy.$name($keys, i64 %hole_left, $spare, i64 %put, i64 1)
  %put_next = add i64 %put, 1
  br label %next
both:
  %is_many = icmp uge i64 %count, $merged
  br i1 %is_many, label %merge, label %no
merge:
  call void @weft.sort.copy.$name($spare, i64 0, $keys, i64 %start, i64 %size)
  br label %head
head:
  %left_at = phi i64 [ 0, %merge ], [ %next_left, %step ]
  %right_at = phi i64 [ %middle, %merge ], [ %next_right, %step ]
  %at = phi i64 [ %start, %merge ], [ %next_at, %step ]
  %has_left = icmp ult i64 %left_at, %size
  %has_right = icmp ult i64 %right_at, %end
  %has_both = and i1 %has_left, %has_right
  br i1 %has_both, label %step, label %rest
step:
  %key.a.place = getelementptr $key, ptr %spare, i64 %left_at
  %key.b.place = getelementptr $key, ptr %keys, i64 %right_at
  %key.a = load $key, ptr %key.a.place, align $bytes
  %key.b = load $key, ptr %key.b.place, align $bytes
  %is_less = icmp ult $key %key.b, %key.a
  call void @weft.sort.take.$name($keys, i64 %at, i64 %right_at, $spare, i64 %left_at, i1 %is_less)
  %more_right = zext i1 %is_less to i64
  %more_left = sub i64 1, %more_right
  %next_right = add i64 %right_at, %more_right
  %next_left = add i64 %left_at, %more_left
  %next_at = add i64 %at, 1
  br label %head
rest:
  %remaining = sub i64 %size, %left_at
  call void @weft.sort.copy.$name($keys, i64 %at, $spare, i64 %left_at, i64 %remaining)
  br label %done
done:
  ret i1 true
no:
  ret i1 false
}
