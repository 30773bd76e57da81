define internal i1 @weft.sort.counted.$name(ptr %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %tallies = alloca [$most_distinct x i64], align 64
  %distinct = alloca [$most_distinct x $key], align 64
  %ordered = alloca [$most_distinct x $key], align 64
  %seen = getelementptr $key, ptr %to, i64 0
  %counts = getelementptr $key, ptr %to, i64 $slots
  %is_many = icmp uge i64 %count, $least_counted
  %odd = and i64 %count, $last_lane
  %some = add i64 %odd, $looked_at
  br i1 %is_many, label %start, label %no
start:
  %first = load $key, ptr %from, align $bytes
  call void @weft.sort.fill.$name(ptr %distinct, i64 0, i64 $most_compared, i64 $most_compared, $key %first)
  call void @weft.sort.fill.$name(ptr %seen, i64 0, i64 $slots, i64 $slots, $key %first)
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 $count_bytes, i1 false)
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ], [ %i.next, %pause ]
  %kinds = phi i64 [ 1, %start ], [ %kinds.next, %next ], [ %kinds.next, %pause ]
  %steps = phi i64 [ 0, %start ], [ %steps.next, %next ], [ %steps.next, %pause ]
  %limit = phi i64 [ %some, %start ], [ %limit, %next ], [ %count, %pause ]
  %place = getelementptr $key, ptr %from, i64 %i
  %element = load $key, ptr %place, align $bytes
  %slot = call i64 @weft.sort.slot.$name($key %element)
  %seen_place = getelementptr $key, ptr %seen, i64 %slot
  %seen_element = load $key, ptr %seen_place, align $bytes
  %count_place = getelementptr i64, ptr %counts, i64 %slot
  %before = load i64, ptr %count_place, align $bytes
  %after = add i64 %before, 1
  %is_seen = icmp eq $key %seen_element, %element
  br i1 %is_seen, label %again, label %probe
again:
  store i64 %after, ptr %count_place, align $bytes
  br label %next
probe:
  %at = phi i64 [ %slot, %head ], [ %at.next, %other ]
  %probes = phi i64 [ %steps, %head ], [ %probes.next, %other ]
  %at.place = getelementptr $key, ptr %seen, i64 %at
  %at.element = load $key, ptr %at.place, align $bytes
  %at.count_place = getelementptr i64, ptr %counts, i64 %at
  %at.before = load i64, ptr %at.count_place, align $bytes
  %at.after = add i64 %at.before, 1
  %at.is_seen = icmp eq $key %at.element, %element
  br i1 %at.is_seen, label %known, label %unlike
known:
  store i64 %at.after, ptr %at.count_place, align $bytes
  br label %next
unlike:
  %is_free = icmp eq i64 %at.before, 0
  %is_first = icmp eq $key %at.element, %first
  %is_new = and i1 %is_free, %is_first
  br i1 %is_new, label %new, label %other
other:
  %at.more = add i64 %at, 1
  %at.next = and i64 %at.more, $last_slot
  %probes.next = add i64 %probes, 1
  %allowed = add i64 %i, $slots
  %is_slow = icmp ugt i64 %probes.next, %allowed
  br i1 %is_slow, label %no, label %probe
new:
  %is_full = icmp eq i64 %kinds, $most_distinct
  br i1 %is_full, label %no, label %put
put:
  store $key %element, ptr %at.place, align $bytes
  store i64 1, ptr %at.count_place, align $bytes
  %distinct_place = getelementptr $key, ptr %distinct, i64 %kinds
  store $key %element, ptr %distinct_place, align $bytes
  %more_kinds = add i64 %kinds, 1
  br label %next
next:
  %kinds.next = phi i64 [ %kinds, %again ], [ %kinds, %known ], [ %more_kinds, %put ]
  %steps.next = phi i64 [ %steps, %again ], [ %probes, %known ], [ %probes, %put ]
  %i.next = add i64 %i, 1
  %goes_on = icmp ult i64 %i.next, %limit
  br i1 %goes_on, label %head, label %pause
pause:
  %rest = sub i64 %count, %i.next
  %rest_place = getelementptr $key, ptr %from, i64 %i.next
  %is_counted = call i1 @weft.sort.compared.$name(ptr %rest_place, i64 %rest, ptr %distinct, i64 %kinds.next, ptr %seen, ptr %counts)
  br i1 %is_counted, label %write, label %head
write:
  call void @weft.sort.coded.$name(ptr %ordered, ptr %distinct, i64 %kinds.next, ptr %codes)
  br label %tally
tally:
  %j = phi i64 [ 0, %write ], [ %j.next, %tally ]
  %j.place = getelementptr $key, ptr %ordered, i64 %j
  %j.element = load $key, ptr %j.place, align $bytes
  %j.slot = call i64 @weft.sort.slot_of.$name($key %j.element, ptr %seen)
  %j.count_place = getelementptr i64, ptr %counts, i64 %j.slot
  %j.count = load i64, ptr %j.count_place, align $bytes
  %j.tally = getelementptr i64, ptr %tallies, i64 %j
  store i64 %j.count, ptr %j.tally, align 8
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %kinds.next
  br i1 %j.more, label %tally, label %kind
kind:
  %k = phi i64 [ 0, %tally ], [ %k.next, %kind ]
  %low = phi i64 [ 0, %tally ], [ %high, %kind ]
  %k.place = getelementptr $key, ptr %ordered, i64 %k
  %k.element = load $key, ptr %k.place, align $bytes
  %k.tally = getelementptr i64, ptr %tallies, i64 %k
  %size = load i64, ptr %k.tally, align 8
  %high = add i64 %low, %size
  call void @weft.sort.fill.$name(ptr %to, i64 %low, i64 %high, i64 %count, $key %k.element)
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %kinds.next
  br i1 %k.more, label %kind, label %done
done:
  ret i1 true
no:
  ret i1 false
}

define internal i64 @weft.sort.slot.$name($key %element) alwaysinline nounwind {
  %mixed = mul $key %element, $mixes
  %high = lshr $key %mixed, $slot_shift
  %slot = $widened %high to i64
  ret i64 %slot
}

define internal i64 @weft.sort.slot_of.$name($key %element, ptr %seen) nounwind {
entry:
  %slot = call i64 @weft.sort.slot.$name($key %element)
  br label %head
head:
  %at = phi i64 [ %slot, %entry ], [ %at.next, %head ]
  %place = getelementptr $key, ptr %seen, i64 %at
  %there = load $key, ptr %place, align $bytes
  %more = add i64 %at, 1
  %at.next = and i64 %more, $last_slot
  %is_there = icmp eq $key %there, %element
  br i1 %is_there, label %found, label %head
found:
  ret i64 %at
}

define internal i1 @weft.sort.compared.$name(ptr %from, i64 %count, ptr %distinct, i64 %kinds, ptr %seen, ptr %counts) nounwind {
entry:
  %found = alloca [$most_compared x i64], align 64
  %is_done = icmp eq i64 %count, 0
  br i1 %is_done, label %all, label %look
look:
  %has_few = icmp ule i64 %kinds, $most_compared
  %has_room = icmp ule i64 %count, $most_summed
  %is_few = and i1 %has_few, %has_room
  br i1 %is_few, label %few, label %unlike
few:
  %is_half = icmp ule i64 %kinds, $half_compared
  br i1 %is_half, label %half, label %whole
half:
  call void @weft.sort.compare$half_compared.$name(ptr %from, i64 %count, ptr %distinct, ptr %found)
  br label %sum
whole:
  call void @weft.sort.compare$most_compared.$name(ptr %from, i64 %count, ptr %distinct, ptr %found)
  br label %sum
sum:
  %i = phi i64 [ 0, %half ], [ 0, %whole ], [ %i.next, %sum ]
  %total = phi i64 [ 0, %half ], [ 0, %whole ], [ %total.next, %sum ]
  %i.place = getelementptr i64, ptr %found, i64 %i
  %i.found = load i64, ptr %i.place, align 8
  %total.next = add i64 %total, %i.found
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %kinds
  br i1 %i.more, label %sum, label %check
check:
  %is_all = icmp eq i64 %total.next, %count
  br i1 %is_all, label %put, label %unlike
put:
  %j = phi i64 [ 0, %check ], [ %j.next, %put ]
  %j.place = getelementptr i64, ptr %found, i64 %j
  %j.found = load i64, ptr %j.place, align 8
  %element_place = getelementptr $key, ptr %distinct, i64 %j
  %element = load $key, ptr %element_place, align $bytes
  %slot = call i64 @weft.sort.slot_of.$name($key %element, ptr %seen)
  %slot_place = getelementptr i64, ptr %counts, i64 %slot
  %before = load i64, ptr %slot_place, align $bytes
  %after = add i64 %before, %j.found
  store i64 %after, ptr %slot_place, align $bytes
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %kinds
  br i1 %j.more, label %put, label %all
all:
  ret i1 true
unlike:
  ret i1 false
}

define internal void @weft.sort.fill.$name(ptr %to, i64 %low, i64 %high, i64 %end, $key %element) noinline nounwind {
entry:
  %lane = insertelement $vector poison, $key %element, i64 0
  %elements = shufflevector $vector %lane, $vector poison, <$lanes x i32> zeroinitializer
  br label %head
head:
  %at = phi i64 [ %low, %entry ], [ %next, %vector ]
  %next = add i64 %at, $lanes
  %some = icmp ult i64 %at, %high
  br i1 %some, label %room, label %done
room:
  %has_room = icmp ule i64 %next, %end
  br i1 %has_room, label %vector, label %single
vector:
  %place = getelementptr $key, ptr %to, i64 %at
  store $vector %elements, ptr %place, align $bytes
  br label %head
single:
  %one = phi i64 [ %at, %room ], [ %one.next, %single ]
  %one.place = getelementptr $key, ptr %to, i64 %one
  store $key %element, ptr %one.place, align $bytes
  %one.next = add i64 %one, 1
  %is_below = icmp ult i64 %one.next, %high
  br i1 %is_below, label %single, label %done
done:
  ret void
}
