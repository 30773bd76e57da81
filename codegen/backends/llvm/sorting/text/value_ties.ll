define internal i1 @weft.sort.is_nan.$name($key %element, $key %infinity) alwaysinline nounwind {
  %size = and $key %element, $magnitude
  %is_nan = icmp ugt $key %size, %infinity
  ret i1 %is_nan
}

define internal void @weft.sort.mend.$name(ptr %to, ptr %from, i64 %count, $key %infinity, ptr %codes) noinline nounwind {
entry:
  %is_float = icmp ne $key %infinity, 0
  %some = icmp ne i64 %count, 0
  %looks = and i1 %is_float, %some
  br i1 %looks, label %look, label %done
look:
  %last = sub i64 %count, 1
  %last_place = getelementptr $key, ptr %to, i64 %last
  %first_element = load $key, ptr %to, align $bytes
  %last_element = load $key, ptr %last_place, align $bytes
  %first_nan = call i1 @weft.sort.is_nan.$name($key %first_element, $key %infinity)
  %last_nan = call i1 @weft.sort.is_nan.$name($key %last_element, $key %infinity)
  %has_nan = or i1 %first_nan, %last_nan
  %zero_key = call $key @weft.sort.key.$name($key 0, ptr %codes)
  %negative_key = call $key @weft.sort.key.$name($key $sign, ptr %codes)
  %descending = icmp ult $key %zero_key, %negative_key
  br i1 %has_nan, label %count_all, label %search
search:
  %at = call i64 @weft.sort.bound.$name(ptr %to, i64 0, i64 %count, $key %negative_key, i1 false, ptr %codes)
  %is_within = icmp ult i64 %at, %count
  br i1 %is_within, label %compare, label %done
compare:
  %found_place = getelementptr $key, ptr %to, i64 %at
  %found = load $key, ptr %found_place, align $bytes
  %has_negative = icmp eq $key %found, $sign
  br i1 %has_negative, label %count_all, label %done
count_all:
  br label %counting
counting:
  %i = phi i64 [ 0, %count_all ], [ %i.next, %counting ]
  %front = phi i64 [ 0, %count_all ], [ %front.next, %counting ]
  %nans = phi i64 [ 0, %count_all ], [ %nans.next, %counting ]
  %before = phi i64 [ 0, %count_all ], [ %before.next, %counting ]
  %i.place = getelementptr $key, ptr %from, i64 %i
  %i.element = load $key, ptr %i.place, align $bytes
  %i.key = call $key @weft.sort.key.$name($key %i.element, ptr %codes)
  %i.nan = call i1 @weft.sort.is_nan.$name($key %i.element, $key %infinity)
  %i.size = and $key %i.element, $magnitude
  %i.some = icmp ne $key %i.size, 0
  %i.below = icmp ult $key %i.key, %zero_key
  %i.less = and i1 %i.below, %i.some
  %i.front = and i1 %i.nan, %i.less
  %i.number = xor i1 %i.nan, true
  %i.before = and i1 %i.number, %i.less
  %front.more = zext i1 %i.front to i64
  %nans.more = zext i1 %i.nan to i64
  %before.more = zext i1 %i.before to i64
  %front.next = add i64 %front, %front.more
  %nans.next = add i64 %nans, %nans.more
  %before.next = add i64 %before, %before.more
  %i.next = add i64 %i, 1
  %i.goes_on = icmp ult i64 %i.next, %count
  br i1 %i.goes_on, label %counting, label %move
move:
  %numbers = sub i64 %count, %nans.next
  %start = select i1 %descending, i64 %nans.next, i64 0
  %nan_start = select i1 %descending, i64 0, i64 %numbers
  %zero_start = add i64 %start, %before.next
  %target = getelementptr $key, ptr %to, i64 %start
  %source = getelementptr $key, ptr %to, i64 %front.next
  %size = mul i64 %numbers, $bytes
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  br label %putting
putting:
  %j = phi i64 [ 0, %move ], [ %j.next, %put_next ]
  %zero_at = phi i64 [ %zero_start, %move ], [ %zero_at.next, %put_next ]
  %nan_at = phi i64 [ %nan_start, %move ], [ %nan_at.next, %put_next ]
  %j.place = getelementptr $key, ptr %from, i64 %j
  %j.element = load $key, ptr %j.place, align $bytes
  %j.nan = call i1 @weft.sort.is_nan.$name($key %j.element, $key %infinity)
  %j.size = and $key %j.element, $magnitude
  %j.zero = icmp eq $key %j.size, 0
  %j.some = or i1 %j.nan, %j.zero
  br i1 %j.some, label %put, label %put_next
put:
  %rank = select i1 %j.nan, i64 %nan_at, i64 %zero_at
  %put.place = getelementptr $key, ptr %to, i64 %rank
  store $key %j.element, ptr %put.place, align $bytes
  br label %put_next
put_next:
  %nan_at.more = zext i1 %j.nan to i64
  %zero_at.more = zext i1 %j.zero to i64
  %nan_at.next = add i64 %nan_at, %nan_at.more
  %zero_at.next = add i64 %zero_at, %zero_at.more
  %j.next = add i64 %j, 1
  %j.goes_on = icmp ult i64 %j.next, %count
  br i1 %j.goes_on, label %putting, label %done
done:
  ret void
}
