define internal i1 @weft.sort.is_done.$name(ptr %to, ptr %from, i64 %count, ptr %codes) nounwind {
entry:
  %decode = getelementptr $key, ptr %codes, i64 $decoding
  %is_few = icmp ule i64 %count, $many_keys
  br i1 %is_few, label %few, label %look
few:
  call void @weft.sort.recode.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  call void @weft.sort.few.$name(ptr %to, i64 %count, ptr %decode)
  ret i1 true
look:
  %run = call i64 @weft.sort.ascends.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  %ascends = icmp eq i64 %run, %count
  br i1 %ascends, label %copied, label %turned
copied:
  ret i1 true
turned:
  %run_last = sub i64 %run, 1
  %first_key = call $key @weft.sort.key_at.$name(ptr %from, i64 0, ptr %codes)
  %last_key = call $key @weft.sort.key_at.$name(ptr %from, i64 %run_last, ptr %codes)
  %is_flat = icmp eq $key %first_key, %last_key
  br i1 %is_flat, label %flat, label %ends
flat:
  %descends = call i1 @weft.sort.descends.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  br i1 %descends, label %copied, label %restore
restore:
  call void @weft.sort.append.$name(ptr %to, i64 0, ptr %from, i64 0, i64 %run)
  br label %ends
ends:
  %last = call i64 @weft.sort.last_run.$name(ptr %from, i64 %count, ptr %codes)
  %between = sub i64 %last, %run
  %few_keys = udiv i64 %count, $few_share
  %is_small = icmp ule i64 %between, %few_keys
  %has_room = icmp ule i64 %between, $put
  %may_pay = and i1 %is_small, %has_room
  br i1 %may_pay, label %merge, label %no
merge:
  %last_place = getelementptr $key, ptr %from, i64 %last
  %last_size = sub i64 %count, %last
  call void @weft.sort.merge.$name(ptr %to, ptr %from, i64 %run, ptr %last_place, i64 %last_size, ptr %codes)
  %is_whole = icmp eq i64 %between, 0
  br i1 %is_whole, label %merged, label %put
put:
  %first_place = getelementptr $key, ptr %from, i64 %run
  %rest = sub i64 %count, %between
  call void @weft.sort.put.$name(ptr %to, i64 %rest, ptr %first_place, i64 %between, ptr %codes)
  ret i1 true
merged:
  ret i1 true
no:
  %is_counted = call i1 @weft.sort.counted.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  ret i1 %is_counted
}

define internal i64 @weft.sort.ascends.$name(ptr noalias %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %other_place = getelementptr $key, ptr %codes, i64 1
  %negative = call $vector @weft.sort.codes_of.$name(ptr %codes)
  %other = call $vector @weft.sort.codes_of.$name(ptr %other_place)
  %least = load $key, ptr %from, align $bytes
  %least_key = call $key @weft.sort.key.$name($key %least, ptr %codes)
  %first = insertelement $vector poison, $key %least_key, i64 0
  %firsts = shufflevector $vector %first, $vector poison, <$lanes x i32> zeroinitializer
  %last = sub i64 %count, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %more ]
  %keys = phi $vector [ %firsts, %entry ], [ %here, %more ]
  %place = getelementptr $key, ptr %from, i64 %at
  %target = getelementptr $key, ptr %to, i64 %at
  %elements = load $vector, ptr %place, align $bytes
  %here = call $vector @weft.sort.coded_of.$name($vector %elements, $vector %negative, $vector %other)
  %before = shufflevector $vector %keys, $vector %here, <$lanes x i32> <$shifted>
  %differs = icmp ugt $vector %before, %here
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  store $vector %elements, ptr %target, align $bytes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %break, label %more
more:
  %next = add i64 %at, $lanes
  %is_whole = icmp ule i64 %next, %last
  br i1 %is_whole, label %head, label %rest
rest:
  %last_before = sub i64 %last, 1
  %last_place = getelementptr $key, ptr %from, i64 %last
  %last_place_before = getelementptr $key, ptr %from, i64 %last_before
  %last_target = getelementptr $key, ptr %to, i64 %last
  %last_elements = load $vector, ptr %last_place, align $bytes
  %last_here = call $vector @weft.sort.coded_of.$name($vector %last_elements, $vector %negative, $vector %other)
  %last_keys = call $vector @weft.sort.keys_at.$name(ptr %last_place_before, $vector %negative, $vector %other)
  %last_differs = icmp ugt $vector %last_keys, %last_here
  %last_bits = bitcast <$lanes x i1> %last_differs to i$lanes
  store $vector %last_elements, ptr %last_target, align $bytes
  %last_some = icmp ne i$lanes %last_bits, 0
  br i1 %last_some, label %break, label %same
same:
  ret i64 %count
break:
  %break.at = phi i64 [ %at, %head ], [ %last, %rest ]
  %break.bits = phi i$lanes [ %bits, %head ], [ %last_bits, %rest ]
  %lane = call i$lanes @llvm.cttz.i$lanes(i$lanes %break.bits, i1 true)
  %wide = zext i$lanes %lane to i64
  %end = add i64 %break.at, %wide
  ret i64 %end
}

define internal i1 @weft.sort.descends.$name(ptr noalias %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %other_place = getelementptr $key, ptr %codes, i64 1
  %negative = call $vector @weft.sort.codes_of.$name(ptr %codes)
  %other = call $vector @weft.sort.codes_of.$name(ptr %other_place)
  %most = load $key, ptr %from, align $bytes
  %most_key = call $key @weft.sort.key.$name($key %most, ptr %codes)
  %first = insertelement $vector poison, $key %most_key, i64 0
  %firsts = shufflevector $vector %first, $vector poison, <$lanes x i32> zeroinitializer
  %last = sub i64 %count, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %more ]
  %keys = phi $vector [ %firsts, %entry ], [ %here, %more ]
  %place = getelementptr $key, ptr %from, i64 %at
  %mirror = sub i64 %last, %at
  %target = getelementptr $key, ptr %to, i64 %mirror
  %elements = load $vector, ptr %place, align $bytes
  %here = call $vector @weft.sort.coded_of.$name($vector %elements, $vector %negative, $vector %other)
  %before = shufflevector $vector %keys, $vector %here, <$lanes x i32> <$shifted>
  %differs = icmp ult $vector %before, %here
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %break, label %more
more:
  %turned = shufflevector $vector %elements, $vector poison, <$lanes x i32> <$reverse>
  store $vector %turned, ptr %target, align $bytes
  %next = add i64 %at, $lanes
  %is_whole = icmp ule i64 %next, %last
  br i1 %is_whole, label %head, label %rest
rest:
  %last_before = sub i64 %last, 1
  %last_place = getelementptr $key, ptr %from, i64 %last
  %last_place_before = getelementptr $key, ptr %from, i64 %last_before
  %last_elements = load $vector, ptr %last_place, align $bytes
  %last_here = call $vector @weft.sort.coded_of.$name($vector %last_elements, $vector %negative, $vector %other)
  %last_keys = call $vector @weft.sort.keys_at.$name(ptr %last_place_before, $vector %negative, $vector %other)
  %last_differs = icmp ult $vector %last_keys, %last_here
  %last_turned = shufflevector $vector %last_elements, $vector poison, <$lanes x i32> <$reverse>
  store $vector %last_turned, ptr %to, align $bytes
  %last_bits = bitcast <$lanes x i1> %last_differs to i$lanes
  %last_some = icmp ne i$lanes %last_bits, 0
  br i1 %last_some, label %break, label %same
same:
  ret i1 true
break:
  ret i1 false
}

define internal i64 @weft.sort.last_run.$name(ptr %keys, i64 %count, ptr %codes) noinline nounwind {
entry:
  %other_place = getelementptr $key, ptr %codes, i64 1
  %negative = call $vector @weft.sort.codes_of.$name(ptr %codes)
  %other = call $vector @weft.sort.codes_of.$name(ptr %other_place)
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
  %vector = call $vector @weft.sort.keys_at.$name(ptr %place, $vector %negative, $vector %other)
  %vector_after = call $vector @weft.sort.keys_at.$name(ptr %place_after, $vector %negative, $vector %other)
  %differs = icmp ugt $vector %vector, %vector_after
  %bits = bitcast <$lanes x i1> %differs to i$lanes
  %some = icmp ne i$lanes %bits, 0
  br i1 %some, label %break, label %more
more:
  br i1 %is_first, label %whole, label %head
whole:
  ret i64 0
break:
  %zeros = call i$lanes @llvm.ctlz.i$lanes(i$lanes %bits, i1 true)
  %wide = zext i$lanes %zeros to i64
  %lane = sub i64 $lanes, %wide
  %start = add i64 %from, %lane
  ret i64 %start
}

define internal i64 @weft.sort.bound.$name(ptr %keys, i64 %low, i64 %high, $key %key, i1 %is_after, ptr %codes) noinline nounwind {
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
  %element = load $key, ptr %place, align $bytes
  %other = call $key @weft.sort.key.$name($key %element, ptr %codes)
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

define internal void @weft.sort.put.$name(ptr %to, i64 %count, ptr %from, i64 %others, ptr %codes) noinline nounwind {
entry:
  %few = alloca [$put x $key], align 64
  call void @weft.sort.coded.$name(ptr %few, ptr %from, i64 %others, ptr %codes)
  br label %head
head:
  %left = phi i64 [ %others, %entry ], [ %less, %step ]
  %edge = phi i64 [ %count, %entry ], [ %at, %step ]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %step, label %done
step:
  %less = sub i64 %left, 1
  %place = getelementptr $key, ptr %few, i64 %less
  %element = load $key, ptr %place, align $bytes
  %key = call $key @weft.sort.key.$name($key %element, ptr %codes)
  %at = call i64 @weft.sort.bound.$name(ptr %to, i64 0, i64 %edge, $key %key, i1 true, ptr %codes)
  %block = sub i64 %edge, %at
  %size = mul i64 %block, $bytes
  %moved = add i64 %at, %left
  %source = getelementptr $key, ptr %to, i64 %at
  %target = getelementptr $key, ptr %to, i64 %moved
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  %hole = sub i64 %moved, 1
  %hole_place = getelementptr $key, ptr %to, i64 %hole
  store $key %element, ptr %hole_place, align $bytes
  br label %head
done:
  ret void
}

define internal void @weft.sort.append.$name(ptr %to, i64 %at, ptr %from, i64 %first, i64 %end) alwaysinline nounwind {
  %count = sub i64 %end, %first
  %size = mul i64 %count, $bytes
  %target = getelementptr $key, ptr %to, i64 %at
  %source = getelementptr $key, ptr %from, i64 %first
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  ret void
}

define internal $key @weft.sort.key_at.$name(ptr %keys, i64 %at, ptr %codes) alwaysinline nounwind {
  %place = getelementptr $key, ptr %keys, i64 %at
  %element = load $key, ptr %place, align $bytes
  %key = call $key @weft.sort.key.$name($key %element, ptr %codes)
  ret $key %key
}

define internal void @weft.sort.merge.$name(ptr noalias %to, ptr %a, i64 %size_a, ptr %b, i64 %size_b, ptr %codes) noinline nounwind {
entry:
  %last_a = sub i64 %size_a, 1
  %key_b = call $key @weft.sort.key_at.$name(ptr %b, i64 0, ptr %codes)
  %key_a = call $key @weft.sort.key_at.$name(ptr %a, i64 %last_a, ptr %codes)
  %start = call i64 @weft.sort.bound.$name(ptr %a, i64 0, i64 %size_a, $key %key_b, i1 true, ptr %codes)
  %stop = call i64 @weft.sort.bound.$name(ptr %b, i64 0, i64 %size_b, $key %key_a, i1 false, ptr %codes)
  %tail = add i64 %size_a, %stop
  call void @weft.sort.append.$name(ptr %to, i64 %tail, ptr %b, i64 %stop, i64 %size_b)
  %other_place = getelementptr $key, ptr %codes, i64 1
  %above_place = getelementptr $key, ptr %codes, i64 $decoding
  %below_place = getelementptr $key, ptr %above_place, i64 1
  %negative = call $vector @weft.sort.codes_of.$name(ptr %codes)
  %other = call $vector @weft.sort.codes_of.$name(ptr %other_place)
  %above = call $vector @weft.sort.codes_of.$name(ptr %above_place)
  %below = call $vector @weft.sort.codes_of.$name(ptr %below_place)
  br label %head
head:
  %i = phi i64 [ %start, %entry ], [ %i.found, %put_b ], [ %i.after, %put_a ], [ %i.wide, %wide ], [ %i.next, %narrow ]
  %j = phi i64 [ 0, %entry ], [ %j.after, %put_b ], [ %j.found, %put_a ], [ %j.wide, %wide ], [ %j.next, %narrow ]
  %i_end = phi i64 [ %size_a, %entry ], [ %i_end, %put_b ], [ %i_end, %put_a ], [ %i_end.wide, %wide ], [ %i_end, %narrow ]
  %j_end = phi i64 [ %stop, %entry ], [ %j_end, %put_b ], [ %j_end, %put_a ], [ %j_end.wide, %wide ], [ %j_end, %narrow ]
  %at = add i64 %i, %j
  %left_a = sub i64 %i_end, %i
  %left_b = sub i64 %j_end, %j
  %no_a = icmp eq i64 %left_a, 0
  br i1 %no_a, label %rest_b, label %look
rest_b:
  call void @weft.sort.append.$name(ptr %to, i64 %at, ptr %b, i64 %j, i64 %j_end)
  ret void
look:
  %no_b = icmp eq i64 %left_b, 0
  br i1 %no_b, label %rest_a, label %both
rest_a:
  call void @weft.sort.append.$name(ptr %to, i64 %at, ptr %a, i64 %i, i64 %i_end)
  ret void
both:
  %sum = add i64 %left_a, %left_b
  %few = udiv i64 %sum, $rare_share
  %is_few_b = icmp ule i64 %left_b, %few
  br i1 %is_few_b, label %put_b, label %others
others:
  %is_few_a = icmp ule i64 %left_a, %few
  br i1 %is_few_a, label %put_a, label %many
put_b:
  %b.place = getelementptr $key, ptr %b, i64 %j
  %b.element = load $key, ptr %b.place, align $bytes
  %b.key = call $key @weft.sort.key.$name($key %b.element, ptr %codes)
  %i.found = call i64 @weft.sort.bound.$name(ptr %a, i64 %i, i64 %i_end, $key %b.key, i1 true, ptr %codes)
  call void @weft.sort.append.$name(ptr %to, i64 %at, ptr %a, i64 %i, i64 %i.found)
  %block.a = sub i64 %i.found, %i
  %at.put_b = add i64 %at, %block.a
  %put_b.place = getelementptr $key, ptr %to, i64 %at.put_b
  store $key %b.element, ptr %put_b.place, align $bytes
  %j.after = add i64 %j, 1
  br label %head
put_a:
  %a.place = getelementptr $key, ptr %a, i64 %i
  %a.element = load $key, ptr %a.place, align $bytes
  %a.key = call $key @weft.sort.key.$name($key %a.element, ptr %codes)
  %j.found = call i64 @weft.sort.bound.$name(ptr %b, i64 %j, i64 %j_end, $key %a.key, i1 false, ptr %codes)
  call void @weft.sort.append.$name(ptr %to, i64 %at, ptr %b, i64 %j, i64 %j.found)
  %block.b = sub i64 %j.found, %j
  %at.put_a = add i64 %at, %block.b
  %put_a.place = getelementptr $key, ptr %to, i64 %at.put_a
  store $key %a.element, ptr %put_a.place, align $bytes
  %i.after = add i64 %i, 1
  br label %head
many:
  %is_less = icmp ult i64 %left_a, %left_b
  %least = select i1 %is_less, i64 %left_a, i64 %left_b
  %is_wide = icmp uge i64 %least, $two_vectors
  br i1 %is_wide, label %wide, label %narrow
wide:
  %w.i = phi i64 [ %i, %many ], [ %i.wide, %wide ]
  %w.j = phi i64 [ %j, %many ], [ %j.wide, %wide ]
  %w.i_end = phi i64 [ %i_end, %many ], [ %i_end.wide, %wide ]
  %w.j_end = phi i64 [ %j_end, %many ], [ %j_end.wide, %wide ]
  %w.i_last = sub i64 %w.i_end, $lanes
  %w.j_last = sub i64 %w.j_end, $lanes
  %x.place = getelementptr $key, ptr %a, i64 %w.i
  %y.place = getelementptr $key, ptr %b, i64 %w.j
  %u.place = getelementptr $key, ptr %a, i64 %w.i_last
  %v.place = getelementptr $key, ptr %b, i64 %w.j_last
  %x = call $vector @weft.sort.keys_at.$name(ptr %x.place, $vector %negative, $vector %other)
  %y.keys = call $vector @weft.sort.keys_at.$name(ptr %y.place, $vector %negative, $vector %other)
  %u = call $vector @weft.sort.keys_at.$name(ptr %u.place, $vector %negative, $vector %other)
  %v.keys = call $vector @weft.sort.keys_at.$name(ptr %v.place, $vector %negative, $vector %other)
  %y = shufflevector $vector %y.keys, $vector poison, <$lanes x i32> <$reverse>
  %v = shufflevector $vector %v.keys, $vector poison, <$lanes x i32> <$reverse>
  %is_x = icmp ule $vector %x, %y
  %is_u = icmp ugt $vector %u, %v
  %taken_x = call i64 @weft.sort.lanes_of.$name(<$lanes x i1> %is_x)
  %taken_u = call i64 @weft.sort.lanes_of.$name(<$lanes x i1> %is_u)
  %taken_y = sub i64 $lanes, %taken_x
  %taken_v = sub i64 $lanes, %taken_u
  %least_keys = call $vector @llvm.umin.$suffix($vector %x, $vector %y)
  %greatest_keys = call $vector @llvm.umax.$suffix($vector %u, $vector %v)
  %low_keys = call $vector @weft.sort.ascending.$name($vector %least_keys)
  %high_keys = call $vector @weft.sort.ascending.$name($vector %greatest_keys)
  %low = call $vector @weft.sort.coded_of.$name($vector %low_keys, $vector %above, $vector %below)
  %high = call $vector @weft.sort.coded_of.$name($vector %high_keys, $vector %above, $vector %below)
  %low.at = add i64 %w.i, %w.j
  %high.at = add i64 %w.i_end, %w.j_last
  %low.place = getelementptr $key, ptr %to, i64 %low.at
  %high.place = getelementptr $key, ptr %to, i64 %high.at
  store $vector %low, ptr %low.place, align $bytes
  store $vector %high, ptr %high.place, align $bytes
  %i.wide = add i64 %w.i, %taken_x
  %j.wide = add i64 %w.j, %taken_y
  %i_end.wide = sub i64 %w.i_end, %taken_u
  %j_end.wide = sub i64 %w.j_end, %taken_v
  %w.left_a = sub i64 %i_end.wide, %i.wide
  %w.left_b = sub i64 %j_end.wide, %j.wide
  %w.is_less = icmp ult i64 %w.left_a, %w.left_b
  %w.least = select i1 %w.is_less, i64 %w.left_a, i64 %w.left_b
  %is_still_wide = icmp uge i64 %w.least, $two_vectors
  br i1 %is_still_wide, label %wide, label %head
narrow:
  %are_few = icmp ult i64 %sum, $lanes
  %taken = select i1 %are_few, i64 %sum, i64 $lanes
  %there_a = call <$lanes x i1> @weft.sort.first_lanes.$name(i64 %left_a)
  %there_b = call <$lanes x i1> @weft.sort.first_lanes.$name(i64 %left_b)
  %there = call <$lanes x i1> @weft.sort.first_lanes.$name(i64 %taken)
  %p.place = getelementptr $key, ptr %a, i64 %i
  %q.place = getelementptr $key, ptr %b, i64 %j
  %p.elements = call $vector @llvm.masked.load.$suffix.p0(ptr align $bytes %p.place, <$lanes x i1> %there_a, $vector zeroinitializer)
  %q.elements = call $vector @llvm.masked.load.$suffix.p0(ptr align $bytes %q.place, <$lanes x i1> %there_b, $vector zeroinitializer)
  %p.coded = call $vector @weft.sort.coded_of.$name($vector %p.elements, $vector %negative, $vector %other)
  %q.coded = call $vector @weft.sort.coded_of.$name($vector %q.elements, $vector %negative, $vector %other)
  %p = select <$lanes x i1> %there_a, $vector %p.coded, $vector splat ($key -1)
  %q.keys = select <$lanes x i1> %there_b, $vector %q.coded, $vector splat ($key -1)
  %q = shufflevector $vector %q.keys, $vector poison, <$lanes x i32> <$reverse>
  %is_p.any = icmp ule $vector %p, %q
  %is_p = and <$lanes x i1> %is_p.any, %there_a
  %taken_p = call i64 @weft.sort.lanes_of.$name(<$lanes x i1> %is_p)
  %taken_q = sub i64 %taken, %taken_p
  %next_keys = call $vector @llvm.umin.$suffix($vector %p, $vector %q)
  %next_ascending = call $vector @weft.sort.ascending.$name($vector %next_keys)
  %next_elements = call $vector @weft.sort.coded_of.$name($vector %next_ascending, $vector %above, $vector %below)
  %next.place = getelementptr $key, ptr %to, i64 %at
  call void @llvm.masked.store.$suffix.p0($vector %next_elements, ptr align $bytes %next.place, <$lanes x i1> %there)
  %i.next = add i64 %i, %taken_p
  %j.next = add i64 %j, %taken_q
  br label %head
}

define internal i64 @weft.sort.lanes_of.$name(<$lanes x i1> %mask) alwaysinline nounwind {
  %bits = bitcast <$lanes x i1> %mask to i$lanes
  %count = call i$lanes @llvm.ctpop.i$lanes(i$lanes %bits)
  %wide = zext i$lanes %count to i64
  ret i64 %wide
}

define internal <$lanes x i1> @weft.sort.first_lanes.$name(i64 %count) alwaysinline nounwind {
  %is_less = icmp ult i64 %count, $lanes
  %shown = select i1 %is_less, i64 %count, i64 $lanes
  %short = trunc i64 %shown to i32
  %first = insertelement <$lanes x i32> poison, i32 %short, i64 0
  %firsts = shufflevector <$lanes x i32> %first, <$lanes x i32> poison, <$lanes x i32> zeroinitializer
  %mask = icmp ult <$lanes x i32> <$counted>, %firsts
  ret <$lanes x i1> %mask
}
