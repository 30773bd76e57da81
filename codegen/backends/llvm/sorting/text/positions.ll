define void @weft.sort.positions.$name(ptr %to, ptr %from, i64 %count, $key %negative, $key %other, $key %magnitude, $key %infinity) nounwind {
entry:
  %codes = alloca [4 x $key], align 64
  %other_place = getelementptr $key, ptr %codes, i64 1
  %magnitude_place = getelementptr $key, ptr %codes, i64 2
  %infinity_place = getelementptr $key, ptr %codes, i64 3
  store $key %negative, ptr %codes, align $bytes
  store $key %other, ptr %other_place, align $bytes
  store $key %magnitude, ptr %magnitude_place, align $bytes
  store $key %infinity, ptr %infinity_place, align $bytes
  %beyond = sub i64 %count, $least_looked_at
  %is_long = icmp ult i64 %beyond, $most_looked_at
  br i1 %is_long, label %look, label %no
look:
  %run = call i64 @weft.sort.ascends.$name(ptr %from, i64 %count, ptr %codes)
  %ascends = icmp eq i64 %run, %count
  br i1 %ascends, label %rising, label %turned
rising:
  call void @weft.sort.iota.$name(ptr %to, i64 0, i64 %count, i64 0)
  ret void
turned:
  %fallen = call i64 @weft.sort.falls.$name(ptr %from, i64 %count, ptr %codes)
  %falls = icmp eq i64 %fallen, %count
  br i1 %falls, label %reverse, label %unlike
reverse:
  call void @weft.sort.backwards.$name(ptr %to, i64 %count)
  ret void
unlike:
  %is_tied = call i1 @weft.sort.is_tied.$name(ptr %from, i64 %fallen, ptr %codes)
  br i1 %is_tied, label %tied, label %ends
tied:
  %sunk = call i64 @weft.sort.descends.$name(ptr %from, i64 %count, ptr %codes)
  %descends = icmp eq i64 %sunk, %count
  br i1 %descends, label %reverse_ties, label %ends
reverse_ties:
  call void @weft.sort.backwards.$name(ptr %to, i64 %count)
  call void @weft.sort.turn_ties.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  ret void
ends:
  %last = call i64 @weft.sort.last_run.$name(ptr %from, i64 %count, ptr %codes)
  %between = sub i64 %last, %run
  %is_small = icmp ule i64 %between, $most_put
  br i1 %is_small, label %weigh, label %kinds
weigh:
  %is_many = icmp uge i64 %count, $least_merged
  br i1 %is_many, label %merge, label %overlap
overlap:
  %before = sub i64 %run, 1
  %key_a = call $key @weft.sort.key_at.$name(ptr %from, i64 %before, ptr %codes)
  %key_b = call $key @weft.sort.key_at.$name(ptr %from, i64 %last, ptr %codes)
  %start = call i64 @weft.sort.bound.$name(ptr %from, i64 0, i64 %run, $key %key_b, i1 true, ptr %codes)
  %stop = call i64 @weft.sort.bound.$name(ptr %from, i64 %last, i64 %count, $key %key_a, i1 false, ptr %codes)
  %mixed_a = sub i64 %run, %start
  %mixed_b = sub i64 %stop, %last
  %is_less = icmp ult i64 %mixed_b, %mixed_a
  %mixed = select i1 %is_less, i64 %mixed_b, i64 %mixed_a
  %few = udiv i64 %count, $few_share
  %is_short = icmp ule i64 %mixed, %few
  br i1 %is_short, label %merge, label %kinds
merge:
  call void @weft.sort.merge.$name(ptr %to, ptr %from, i64 %run, i64 %last, i64 %count, ptr %codes)
  call void @weft.sort.put.$name(ptr %to, ptr %from, i64 %run, i64 %between, i64 %count, ptr %codes)
  ret void
kinds:
  %is_counted = call i1 @weft.sort.counted.$name(ptr %to, ptr %from, i64 %count, ptr %codes)
  br i1 %is_counted, label %done, label %no
done:
  ret void
no:
  store i32 -1, ptr %to, align 4
  ret void
}

define internal $key @weft.sort.key_of.$name($key %element, ptr %codes) alwaysinline nounwind {
$key_of_element  ret $key %key
}

define internal $key @weft.sort.key_at.$name(ptr %from, i64 %at, ptr %codes) alwaysinline nounwind {
  %place = getelementptr $key, ptr %from, i64 %at
  %element = load $key, ptr %place, align $bytes
  %key = call $key @weft.sort.key_of.$name($key %element, ptr %codes)
  ret $key %key
}

define internal $vector @weft.sort.code_of.$name(ptr %codes, i64 %at) alwaysinline nounwind {
  %place = getelementptr $key, ptr %codes, i64 %at
  %scalar = load $key, ptr %place, align $bytes
  %first = insertelement $vector poison, $key %scalar, i64 0
  %vector = shufflevector $vector %first, $vector poison, <$lanes x i32> zeroinitializer
  ret $vector %vector
}

define internal $vector @weft.sort.keys_of.$name(ptr %from, i64 %at, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity) alwaysinline nounwind {
  %place = getelementptr $key, ptr %from, i64 %at
  %elements = load $vector, ptr %place, align $bytes
$keys_of_elements  ret $vector %keys
}

define internal i64 @weft.sort.last_run.$name(ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %negative = call $vector @weft.sort.code_of.$name(ptr %codes, i64 0)
  %other = call $vector @weft.sort.code_of.$name(ptr %codes, i64 1)
  %magnitude = call $vector @weft.sort.code_of.$name(ptr %codes, i64 2)
  %infinity = call $vector @weft.sort.code_of.$name(ptr %codes, i64 3)
  %pairs = sub i64 %count, 1
  br label %head
head:
  %end = phi i64 [ %pairs, %entry ], [ %at, %more ]
  %before = sub i64 %end, $lanes
  %is_first = icmp sle i64 %before, 0
  %at = select i1 %is_first, i64 0, i64 %before
  %after = add i64 %at, 1
  %here = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %at, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %next = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %after, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %differs = icmp ugt $vector %here, %next
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
  %start = add i64 %at, %lane
  ret i64 %start
}

define internal void @weft.sort.iota.$name(ptr %to, i64 %low, i64 %high, i64 %position) noinline nounwind {
entry:
  %short = trunc i64 %position to i32
  %first = insertelement <16 x i32> poison, i32 %short, i64 0
  %start = shufflevector <16 x i32> %first, <16 x i32> poison, <16 x i32> zeroinitializer
  %positions = add <16 x i32> %start, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  br label %head
head:
  %at = phi i64 [ %low, %entry ], [ %next, %vectors ]
  %vector = phi <16 x i32> [ %positions, %entry ], [ %vector.next, %vectors ]
  %next = add i64 %at, 16
  %is_whole = icmp ule i64 %next, %high
  br i1 %is_whole, label %vectors, label %rest
vectors:
  %place = getelementptr i32, ptr %to, i64 %at
  store <16 x i32> %vector, ptr %place, align 4
  %vector.next = add <16 x i32> %vector, splat (i32 16)
  br label %head
rest:
  %one = phi i64 [ %at, %head ], [ %one.next, %single ]
  %some = icmp ult i64 %one, %high
  br i1 %some, label %single, label %done
single:
  %offset = sub i64 %one, %low
  %value = add i64 %position, %offset
  %value.short = trunc i64 %value to i32
  %one.place = getelementptr i32, ptr %to, i64 %one
  store i32 %value.short, ptr %one.place, align 4
  %one.next = add i64 %one, 1
  br label %rest
done:
  ret void
}

define internal i1 @weft.sort.is_tied.$name(ptr %from, i64 %end, ptr %codes) nounwind {
  %before = sub i64 %end, 1
  %key = call $key @weft.sort.key_at.$name(ptr %from, i64 %end, ptr %codes)
  %key_before = call $key @weft.sort.key_at.$name(ptr %from, i64 %before, ptr %codes)
  %is_same = icmp eq $key %key, %key_before
  ret i1 %is_same
}

define internal void @weft.sort.backwards.$name(ptr %to, i64 %count) noinline nounwind {
entry:
  %last = sub i64 %count, 1
  %short = trunc i64 %last to i32
  %first = insertelement <16 x i32> poison, i32 %short, i64 0
  %start = shufflevector <16 x i32> %first, <16 x i32> poison, <16 x i32> zeroinitializer
  %positions = sub <16 x i32> %start, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %vectors ]
  %vector = phi <16 x i32> [ %positions, %entry ], [ %vector.next, %vectors ]
  %next = add i64 %at, 16
  %is_whole = icmp ule i64 %next, %count
  br i1 %is_whole, label %vectors, label %rest
vectors:
  %place = getelementptr i32, ptr %to, i64 %at
  store <16 x i32> %vector, ptr %place, align 4
  %vector.next = sub <16 x i32> %vector, splat (i32 16)
  br label %head
rest:
  %one = phi i64 [ %at, %head ], [ %one.next, %single ]
  %some = icmp ult i64 %one, %count
  br i1 %some, label %single, label %done
single:
  %mirror = sub i64 %last, %one
  %mirror.short = trunc i64 %mirror to i32
  %one.place = getelementptr i32, ptr %to, i64 %one
  store i32 %mirror.short, ptr %one.place, align 4
  %one.next = add i64 %one, 1
  br label %rest
done:
  ret void
}

define internal void @weft.sort.turn_ties.$name(ptr %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %negative = call $vector @weft.sort.code_of.$name(ptr %codes, i64 0)
  %other = call $vector @weft.sort.code_of.$name(ptr %codes, i64 1)
  %magnitude = call $vector @weft.sort.code_of.$name(ptr %codes, i64 2)
  %infinity = call $vector @weft.sort.code_of.$name(ptr %codes, i64 3)
  %last = sub i64 %count, 1
  %end = sub i64 %last, $lanes
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %at.next, %apart ], [ %group.end, %put ]
  %is_done = icmp uge i64 %at, %last
  br i1 %is_done, label %done, label %look
look:
  %is_past = icmp ugt i64 %at, %end
  %start = select i1 %is_past, i64 %end, i64 %at
  %skipped = sub i64 %at, %start
  %start.after = add i64 %start, 1
  %here = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %start, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %there = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %start.after, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %same = icmp eq $vector %here, %there
  %bits = bitcast <$lanes x i1> %same to i$lanes
  %wide = zext i$lanes %bits to i64
  %left = lshr i64 %wide, %skipped
  %some = icmp ne i64 %left, 0
  br i1 %some, label %tie, label %apart
apart:
  %at.next = add i64 %start, $lanes
  br label %head
tie:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %group = add i64 %at, %lane
  %key = call $key @weft.sort.key_at.$name(ptr %from, i64 %group, ptr %codes)
  %second = add i64 %group, 2
  br label %grow
grow:
  %group.end = phi i64 [ %second, %tie ], [ %group.more, %equal ]
  %has_more = icmp ult i64 %group.end, %count
  br i1 %has_more, label %compare, label %put
compare:
  %next.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %group.end, ptr %codes)
  %is_equal = icmp eq $key %next.key, %key
  br i1 %is_equal, label %equal, label %put
equal:
  %group.more = add i64 %group.end, 1
  br label %grow
put:
  %low = sub i64 %count, %group.end
  %high = sub i64 %count, %group
  call void @weft.sort.iota.$name(ptr %to, i64 %low, i64 %high, i64 %group)
  br label %head
done:
  ret void
}

define internal i64 @weft.sort.bound.$name(ptr %from, i64 %low, i64 %high, $key %key, i1 %is_after, ptr %codes) noinline nounwind {
entry:
  br label %head
head:
  %first = phi i64 [ %low, %entry ], [ %next_first, %step ]
  %end = phi i64 [ %high, %entry ], [ %next_end, %step ]
  %some = icmp ult i64 %first, %end
  br i1 %some, label %step, label %done
step:
  %sum = add i64 %first, %end
  %middle = lshr i64 %sum, 1
  %other = call $key @weft.sort.key_at.$name(ptr %from, i64 %middle, ptr %codes)
  %less = icmp ult $key %other, %key
  %same = icmp eq $key %other, %key
  %same_after = and i1 %same, %is_after
  %is_before = or i1 %less, %same_after
  %after = add i64 %middle, 1
  %next_first = select i1 %is_before, i64 %after, i64 %first
  %next_end = select i1 %is_before, i64 %end, i64 %middle
  br label %head
done:
  ret i64 %first
}

define internal void @weft.sort.merge.$name(ptr noalias %to, ptr %from, i64 %size_a, i64 %first_b, i64 %end_b, ptr %codes) noinline nounwind {
entry:
  %last_a = sub i64 %size_a, 1
  %key_b = call $key @weft.sort.key_at.$name(ptr %from, i64 %first_b, ptr %codes)
  %key_a = call $key @weft.sort.key_at.$name(ptr %from, i64 %last_a, ptr %codes)
  %start = call i64 @weft.sort.bound.$name(ptr %from, i64 0, i64 %size_a, $key %key_b, i1 true, ptr %codes)
  %stop = call i64 @weft.sort.bound.$name(ptr %from, i64 %first_b, i64 %end_b, $key %key_a, i1 false, ptr %codes)
  %gap = sub i64 %first_b, %size_a
  %tail = sub i64 %stop, %gap
  %size = sub i64 %end_b, %gap
  call void @weft.sort.iota.$name(ptr %to, i64 0, i64 %start, i64 0)
  call void @weft.sort.iota.$name(ptr %to, i64 %tail, i64 %size, i64 %stop)
  br label %head
head:
  %i = phi i64 [ %start, %entry ], [ %i.found, %put_b ], [ %i.after, %put_a ], [ %i.next, %steps ]
  %j = phi i64 [ %first_b, %entry ], [ %j.after, %put_b ], [ %j.found, %put_a ], [ %j.next, %steps ]
  %at = phi i64 [ %start, %entry ], [ %at.b, %put_b ], [ %at.a, %put_a ], [ %at.next, %steps ]
  %i_end = phi i64 [ %size_a, %entry ], [ %i_end, %put_b ], [ %i_end, %put_a ], [ %i_end.next, %steps ]
  %j_end = phi i64 [ %stop, %entry ], [ %j_end, %put_b ], [ %j_end, %put_a ], [ %j_end.next, %steps ]
  %left_a = sub i64 %i_end, %i
  %left_b = sub i64 %j_end, %j
  %sum = add i64 %left_a, %left_b
  %at_end = add i64 %at, %sum
  %no_a = icmp eq i64 %left_a, 0
  br i1 %no_a, label %rest_b, label %look
rest_b:
  call void @weft.sort.iota.$name(ptr %to, i64 %at, i64 %at_end, i64 %j)
  ret void
look:
  %no_b = icmp eq i64 %left_b, 0
  br i1 %no_b, label %rest_a, label %both
rest_a:
  call void @weft.sort.iota.$name(ptr %to, i64 %at, i64 %at_end, i64 %i)
  ret void
both:
  %few = udiv i64 %sum, $few_share
  %is_few_b = icmp ule i64 %left_b, %few
  br i1 %is_few_b, label %put_b, label %others
others:
  %is_few_a = icmp ule i64 %left_a, %few
  br i1 %is_few_a, label %put_a, label %many
put_b:
  %b.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %j, ptr %codes)
  %i.found = call i64 @weft.sort.bound.$name(ptr %from, i64 %i, i64 %i_end, $key %b.key, i1 true, ptr %codes)
  %block.a = sub i64 %i.found, %i
  %at.put_b = add i64 %at, %block.a
  call void @weft.sort.iota.$name(ptr %to, i64 %at, i64 %at.put_b, i64 %i)
  %put_b.place = getelementptr i32, ptr %to, i64 %at.put_b
  %j.short = trunc i64 %j to i32
  store i32 %j.short, ptr %put_b.place, align 4
  %at.b = add i64 %at.put_b, 1
  %j.after = add i64 %j, 1
  br label %head
put_a:
  %a.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %i, ptr %codes)
  %j.found = call i64 @weft.sort.bound.$name(ptr %from, i64 %j, i64 %j_end, $key %a.key, i1 false, ptr %codes)
  %block.b = sub i64 %j.found, %j
  %at.put_a = add i64 %at, %block.b
  call void @weft.sort.iota.$name(ptr %to, i64 %at, i64 %at.put_a, i64 %j)
  %put_a.place = getelementptr i32, ptr %to, i64 %at.put_a
  %i.short = trunc i64 %i to i32
  store i32 %i.short, ptr %put_a.place, align 4
  %at.a = add i64 %at.put_a, 1
  %i.after = add i64 %i, 1
  br label %head
many:
  %is_less = icmp ult i64 %left_a, %left_b
  %least = select i1 %is_less, i64 %left_a, i64 %left_b
  %i_last = sub i64 %i_end, 1
  %j_last = sub i64 %j_end, 1
  %at_last = sub i64 %at_end, 1
  br label %step
step:
  %n = phi i64 [ 0, %many ], [ %n.next, %step ]
  %x = phi i64 [ %i, %many ], [ %x.next, %step ]
  %u = phi i64 [ %j, %many ], [ %u.next, %step ]
  %y = phi i64 [ %i_last, %many ], [ %y.next, %step ]
  %v = phi i64 [ %j_last, %many ], [ %v.next, %step ]
  %x.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %x, ptr %codes)
  %u.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %u, ptr %codes)
  %y.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %y, ptr %codes)
  %v.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %v, ptr %codes)
  %is_u = icmp ult $key %u.key, %x.key
  %is_v = icmp uge $key %v.key, %y.key
  %low = select i1 %is_u, i64 %u, i64 %x
  %high = select i1 %is_v, i64 %v, i64 %y
  %low.short = trunc i64 %low to i32
  %high.short = trunc i64 %high to i32
  %low.at = add i64 %at, %n
  %high.at = sub i64 %at_last, %n
  %low.place = getelementptr i32, ptr %to, i64 %low.at
  %high.place = getelementptr i32, ptr %to, i64 %high.at
  store i32 %low.short, ptr %low.place, align 4
  store i32 %high.short, ptr %high.place, align 4
  %more_u = zext i1 %is_u to i64
  %more_v = zext i1 %is_v to i64
  %more_x = sub i64 1, %more_u
  %more_y = sub i64 1, %more_v
  %x.next = add i64 %x, %more_x
  %u.next = add i64 %u, %more_u
  %y.next = sub i64 %y, %more_y
  %v.next = sub i64 %v, %more_v
  %n.next = add i64 %n, 1
  %goes_on = icmp ult i64 %n.next, %least
  br i1 %goes_on, label %step, label %steps
steps:
  %i.next = add i64 %x.next, 0
  %j.next = add i64 %u.next, 0
  %at.next = add i64 %at, %n.next
  %i_end.next = add i64 %y.next, 1
  %j_end.next = add i64 %v.next, 1
  br label %head
}

define internal void @weft.sort.put.$name(ptr %to, ptr %from, i64 %first, i64 %others, i64 %count, ptr %codes) noinline nounwind {
entry:
  %few = alloca [$most_put x i64], align 64
  %merged = sub i64 %count, %others
  br label %sort
sort:
  %n = phi i64 [ 0, %entry ], [ %n.next, %hole ]
  %more = icmp ult i64 %n, %others
  br i1 %more, label %insert, label %head
insert:
  %position = add i64 %first, %n
  %key = call $key @weft.sort.key_at.$name(ptr %from, i64 %position, ptr %codes)
  br label %sift
sift:
  %place = phi i64 [ %n, %insert ], [ %before, %shift ]
  %has_before = icmp ne i64 %place, 0
  br i1 %has_before, label %compare, label %hole
compare:
  %before = sub i64 %place, 1
  %before.place = getelementptr i64, ptr %few, i64 %before
  %before.position = load i64, ptr %before.place, align 8
  %before.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %before.position, ptr %codes)
  %is_less = icmp ult $key %key, %before.key
  br i1 %is_less, label %shift, label %hole
shift:
  %shifted.place = getelementptr i64, ptr %few, i64 %place
  store i64 %before.position, ptr %shifted.place, align 8
  br label %sift
hole:
  %hole.place = getelementptr i64, ptr %few, i64 %place
  store i64 %position, ptr %hole.place, align 8
  %n.next = add i64 %n, 1
  br label %sort
head:
  %left = phi i64 [ %others, %sort ], [ %less, %move ]
  %edge = phi i64 [ %merged, %sort ], [ %low, %move ]
  %some = icmp ne i64 %left, 0
  br i1 %some, label %take, label %done
take:
  %less = sub i64 %left, 1
  %taken.place = getelementptr i64, ptr %few, i64 %less
  %taken = load i64, ptr %taken.place, align 8
  %taken.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %taken, ptr %codes)
  br label %find
find:
  %low = phi i64 [ 0, %take ], [ %low.next, %halve ]
  %high = phi i64 [ %edge, %take ], [ %high.next, %halve ]
  %is_wide = icmp ult i64 %low, %high
  br i1 %is_wide, label %halve, label %move
halve:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %middle.place = getelementptr i32, ptr %to, i64 %middle
  %middle.short = load i32, ptr %middle.place, align 4
  %middle.position = zext i32 %middle.short to i64
  %middle.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %middle.position, ptr %codes)
  %comes_before = icmp ult $key %middle.key, %taken.key
  %is_same = icmp eq $key %middle.key, %taken.key
  %is_earlier = icmp ult i64 %middle.position, %taken
  %same_earlier = and i1 %is_same, %is_earlier
  %stays = or i1 %comes_before, %same_earlier
  %after = add i64 %middle, 1
  %low.next = select i1 %stays, i64 %after, i64 %low
  %high.next = select i1 %stays, i64 %high, i64 %middle
  br label %find
move:
  %block = sub i64 %edge, %low
  %size = mul i64 %block, 4
  %moved = add i64 %low, %left
  %source = getelementptr i32, ptr %to, i64 %low
  %target = getelementptr i32, ptr %to, i64 %moved
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  %freed = sub i64 %moved, 1
  %freed.place = getelementptr i32, ptr %to, i64 %freed
  %taken.short = trunc i64 %taken to i32
  store i32 %taken.short, ptr %freed.place, align 4
  br label %head
done:
  ret void
}
