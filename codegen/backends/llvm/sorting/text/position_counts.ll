define internal i1 @weft.sort.counted.$name(ptr %to, ptr %from, i64 %count, ptr %codes) noinline nounwind {
entry:
  %seen = alloca [$slots x $key], align 64
  %numbers = alloca [$slots x i8], align 64
  %kinds = alloca [$most_distinct x $key], align 64
  %counts = alloca [$most_distinct x i64], align 64
  %order = alloca [$most_distinct x i64], align 64
  %is_many = icmp uge i64 %count, $least_counted
  br i1 %is_many, label %start, label %no
start:
  call void @llvm.memset.p0.i64(ptr %numbers, i8 -1, i64 $slots, i1 false)
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ], [ %i.next, %compare ]
  %distinct = phi i64 [ 0, %start ], [ %distinct.next, %next ], [ %distinct.next, %compare ]
  %steps = phi i64 [ 0, %start ], [ %steps.next, %next ], [ %steps.next, %compare ]
  %key = call $key @weft.sort.key_at.$name(ptr %from, i64 %i, ptr %codes)
  %slot = call i64 @weft.sort.slot.$name($key %key)
  br label %probe
probe:
  %at = phi i64 [ %slot, %head ], [ %at.next, %other ]
  %probes = phi i64 [ %steps, %head ], [ %probes.next, %other ]
  %number.place = getelementptr i8, ptr %numbers, i64 %at
  %number.short = load i8, ptr %number.place, align 1
  %number = zext i8 %number.short to i64
  %seen.place = getelementptr $key, ptr %seen, i64 %at
  %is_free = icmp eq i8 %number.short, -1
  br i1 %is_free, label %new, label %known
known:
  %seen.key = load $key, ptr %seen.place, align $bytes
  %is_seen = icmp eq $key %seen.key, %key
  br i1 %is_seen, label %again, label %other
other:
  %at.more = add i64 %at, 1
  %at.next = and i64 %at.more, $last_slot
  %probes.next = add i64 %probes, 1
  %allowed = add i64 %i, $slots
  %is_slow = icmp ugt i64 %probes.next, %allowed
  br i1 %is_slow, label %no, label %probe
again:
  %count.place = getelementptr i64, ptr %counts, i64 %number
  %before = load i64, ptr %count.place, align 8
  %after = add i64 %before, 1
  store i64 %after, ptr %count.place, align 8
  br label %next
new:
  %is_full = icmp eq i64 %distinct, $most_distinct
  br i1 %is_full, label %no, label %put
put:
  %distinct.short = trunc i64 %distinct to i8
  store i8 %distinct.short, ptr %number.place, align 1
  store $key %key, ptr %seen.place, align $bytes
  %kind.place = getelementptr $key, ptr %kinds, i64 %distinct
  store $key %key, ptr %kind.place, align $bytes
  %new.place = getelementptr i64, ptr %counts, i64 %distinct
  store i64 1, ptr %new.place, align 8
  %distinct.more = add i64 %distinct, 1
  br label %next
next:
  %distinct.next = phi i64 [ %distinct, %again ], [ %distinct.more, %put ]
  %steps.next = phi i64 [ %probes, %again ], [ %probes, %put ]
  %i.next = add i64 %i, 1
  %is_end = icmp eq i64 %i.next, %count
  %is_pause = icmp eq i64 %i.next, $looked_at
  %stops = or i1 %is_end, %is_pause
  br i1 %stops, label %pause, label %head
pause:
  br i1 %is_end, label %place, label %compare
compare:
  %is_compared = call i1 @weft.sort.compared.$name(ptr %to, ptr %from, i64 %count, ptr %kinds, i64 %distinct.next, ptr %order, ptr %codes)
  br i1 %is_compared, label %done, label %head
place:
  call void @weft.sort.order.$name(ptr %kinds, i64 %distinct.next, ptr %order)
  br label %sum
sum:
  %k = phi i64 [ 0, %place ], [ %k.next, %sum ]
  %first = phi i64 [ 0, %place ], [ %first.next, %sum ]
  %order.place = getelementptr i64, ptr %order, i64 %k
  %order.number = load i64, ptr %order.place, align 8
  %tally.place = getelementptr i64, ptr %counts, i64 %order.number
  %tally = load i64, ptr %tally.place, align 8
  store i64 %first, ptr %tally.place, align 8
  %first.next = add i64 %first, %tally
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %distinct.next
  br i1 %k.more, label %sum, label %write
write:
  %j = phi i64 [ 0, %sum ], [ %j.next, %store ]
  %j.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %j, ptr %codes)
  %j.slot = call i64 @weft.sort.slot.$name($key %j.key)
  br label %find
find:
  %f = phi i64 [ %j.slot, %write ], [ %f.next, %find ]
  %f.place = getelementptr $key, ptr %seen, i64 %f
  %f.key = load $key, ptr %f.place, align $bytes
  %f.number.place = getelementptr i8, ptr %numbers, i64 %f
  %f.short = load i8, ptr %f.number.place, align 1
  %f.number = zext i8 %f.short to i64
  %f.more = add i64 %f, 1
  %f.next = and i64 %f.more, $last_slot
  %is_key = icmp eq $key %f.key, %j.key
  %is_taken = icmp ne i8 %f.short, -1
  %is_found = and i1 %is_key, %is_taken
  br i1 %is_found, label %store, label %find
store:
  %start.place = getelementptr i64, ptr %counts, i64 %f.number
  %rank = load i64, ptr %start.place, align 8
  %rank.next = add i64 %rank, 1
  store i64 %rank.next, ptr %start.place, align 8
  %rank.place = getelementptr i32, ptr %to, i64 %rank
  %j.short = trunc i64 %j to i32
  store i32 %j.short, ptr %rank.place, align 4
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %count
  br i1 %j.more, label %write, label %done
done:
  ret i1 true
no:
  ret i1 false
}

define internal i64 @weft.sort.slot.$name($key %key) alwaysinline nounwind {
  %mixed = mul $key %key, $mixes
  %high = lshr $key %mixed, $slot_shift
  %slot = $widened %high to i64
  ret i64 %slot
}

define internal void @weft.sort.order.$name(ptr %kinds, i64 %count, ptr %order) noinline nounwind {
entry:
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n.next, %hole ]
  %kind.place = getelementptr $key, ptr %kinds, i64 %n
  %kind = load $key, ptr %kind.place, align $bytes
  br label %sift
sift:
  %place = phi i64 [ %n, %head ], [ %before, %shift ]
  %has_before = icmp ne i64 %place, 0
  br i1 %has_before, label %compare, label %hole
compare:
  %before = sub i64 %place, 1
  %before.place = getelementptr i64, ptr %order, i64 %before
  %before.number = load i64, ptr %before.place, align 8
  %before.kind.place = getelementptr $key, ptr %kinds, i64 %before.number
  %before.kind = load $key, ptr %before.kind.place, align $bytes
  %is_less = icmp ult $key %kind, %before.kind
  br i1 %is_less, label %shift, label %hole
shift:
  %shifted.place = getelementptr i64, ptr %order, i64 %place
  store i64 %before.number, ptr %shifted.place, align 8
  br label %sift
hole:
  %hole.place = getelementptr i64, ptr %order, i64 %place
  store i64 %n, ptr %hole.place, align 8
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, %count
  br i1 %more, label %head, label %done
done:
  ret void
}

define internal i1 @weft.sort.compared.$name(ptr %to, ptr %from, i64 %count, ptr %kinds, i64 %distinct, ptr %order, ptr %codes) noinline nounwind {
entry:
  %negative = call $vector @weft.sort.code_of.$name(ptr %codes, i64 0)
  %other = call $vector @weft.sort.code_of.$name(ptr %codes, i64 1)
  %magnitude = call $vector @weft.sort.code_of.$name(ptr %codes, i64 2)
  %infinity = call $vector @weft.sort.code_of.$name(ptr %codes, i64 3)
  %is_few = icmp ule i64 %distinct, $most_compared
  br i1 %is_few, label %start, label %no
start:
  call void @weft.sort.order.$name(ptr %kinds, i64 %distinct, ptr %order)
  br label %kind
kind:
  %k = phi i64 [ 0, %start ], [ %k.next, %kind.done ]
  %rank.first = phi i64 [ 0, %start ], [ %rank.rest, %kind.done ]
  %order.place = getelementptr i64, ptr %order, i64 %k
  %number = load i64, ptr %order.place, align 8
  %kind.place = getelementptr $key, ptr %kinds, i64 %number
  %key = load $key, ptr %kind.place, align $bytes
  %key.first = insertelement $vector poison, $key %key, i64 0
  %keys = shufflevector $vector %key.first, $vector poison, <$lanes x i32> zeroinitializer
  br label %head
head:
  %at = phi i64 [ 0, %kind ], [ %next, %added ]
  %rank = phi i64 [ %rank.first, %kind ], [ %rank.next, %added ]
  %positions = phi <$lanes x i32> [ <$counted>, %kind ], [ %positions.next, %added ]
  %next = add i64 %at, $lanes
  %is_whole = icmp ule i64 %next, %count
  br i1 %is_whole, label %look, label %rest
look:
  %here = call $vector @weft.sort.keys_of.$name(ptr %from, i64 %at, $vector %negative, $vector %other, $vector %magnitude, $vector %infinity)
  %same = icmp eq $vector %here, %keys
  %bits = bitcast <$lanes x i1> %same to i$lanes
  %found = call i$lanes @llvm.ctpop.i$lanes(i$lanes %bits)
  %found.wide = zext i$lanes %found to i64
  %rank.next = add i64 %rank, %found.wide
  %positions.next = add <$lanes x i32> %positions, splat (i32 $lanes)
  %place = getelementptr i32, ptr %to, i64 %rank
  %rank.end = add i64 %rank, $lanes
  %has_room = icmp ule i64 %rank.end, %count
  br i1 %has_room, label %whole, label %part
whole:
  %picked = call <$lanes x i32> @llvm.experimental.vector.compress.v${lanes}i32(<$lanes x i32> %positions, <$lanes x i1> %same, <$lanes x i32> poison)
  store <$lanes x i32> %picked, ptr %place, align 4
  br label %added
part:
  call void @llvm.masked.compressstore.v${lanes}i32(<$lanes x i32> %positions, ptr %place, <$lanes x i1> %same)
  br label %added
added:
  br label %head
rest:
  %one = phi i64 [ %at, %head ], [ %one.next, %kept ]
  %rank.rest = phi i64 [ %rank, %head ], [ %rank.more, %kept ]
  %some = icmp ult i64 %one, %count
  br i1 %some, label %single, label %kind.done
single:
  %one.key = call $key @weft.sort.key_at.$name(ptr %from, i64 %one, ptr %codes)
  %is_kind = icmp eq $key %one.key, %key
  br i1 %is_kind, label %keep, label %kept
keep:
  %one.place = getelementptr i32, ptr %to, i64 %rank.rest
  %one.short = trunc i64 %one to i32
  store i32 %one.short, ptr %one.place, align 4
  br label %kept
kept:
  %one.more = zext i1 %is_kind to i64
  %rank.more = add i64 %rank.rest, %one.more
  %one.next = add i64 %one, 1
  br label %rest
kind.done:
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %distinct
  br i1 %k.more, label %kind, label %all
all:
  %is_all = icmp eq i64 %rank.rest, %count
  ret i1 %is_all
no:
  ret i1 false
}
