define void @weft.sort.keep$kind.$name(ptr noalias %to, ptr noalias %counts, ptr noalias %from, i64 %count, $element %low, $element %high, $element %code) nounwind {
entry:
  %low.0 = insertelement $elements poison, $element %low, i64 0
  %lows = shufflevector $elements %low.0, $elements poison, <$lanes x i32> zeroinitializer
  %high.0 = insertelement $elements poison, $element %high, i64 0
  %highs = shufflevector $elements %high.0, $elements poison, <$lanes x i32> zeroinitializer
  %code.0 = insertelement $elements poison, $element %code, i64 0
  %codes = shufflevector $elements %code.0, $elements poison, <$lanes x i32> zeroinitializer
  %whole = and i64 %count, -$lanes
  %some = icmp ne i64 %whole, 0
  br i1 %some, label %vectors, label %rest
vectors:
  %at = phi i64 [ 0, %entry ], [ %at.next, %vectors ]
  %less = phi i64 [ 0, %entry ], [ %less.next, %vectors ]
  %kept = phi i64 [ 0, %entry ], [ %kept.next, %vectors ]
  %greatest = phi $elements [ zeroinitializer, %entry ], [ %greatest.next, %vectors ]
  %place = getelementptr $element, ptr %from, i64 %at
  %values = load $elements, ptr %place, align $element_bytes
  %keys = call $elements @weft.sort.key$kind.$name($elements %values, $elements %codes)
  %greatest.next = call $elements @llvm.umax.$suffix($elements %greatest, $elements %keys)
  %below = icmp ult $elements %keys, %lows
  %up_to = icmp ule $elements %keys, %highs
  %not_below = xor <$lanes x i1> %below, splat (i1 true)
  %inside = and <$lanes x i1> %up_to, %not_below
  %below_bits = bitcast <$lanes x i1> %below to i$lanes
  %below_count = call i$lanes @llvm.ctpop.i$lanes(i$lanes %below_bits)
  %below_more = zext i$lanes %below_count to i64
  %less.next = add i64 %less, %below_more
  %inside_bits = bitcast <$lanes x i1> %inside to i$lanes
  %inside_count = call i$lanes @llvm.ctpop.i$lanes(i$lanes %inside_bits)
  %inside_more = zext i$lanes %inside_count to i64
  %target = getelementptr $key, ptr %to, i64 %kept
  %wide = $widen $elements %keys to $vector
  %packed = call $vector @llvm.experimental.vector.compress.$key_suffix($vector %wide, <$lanes x i1> %inside, $vector poison)
  store $vector %packed, ptr %target, align $bytes
  %kept.next = add i64 %kept, %inside_more
  %at.next = add i64 %at, $lanes
  %more = icmp ult i64 %at.next, %whole
  br i1 %more, label %vectors, label %rest
rest:
  %at.rest = phi i64 [ 0, %entry ], [ %whole, %vectors ]
  %less.rest = phi i64 [ 0, %entry ], [ %less.next, %vectors ]
  %kept.rest = phi i64 [ 0, %entry ], [ %kept.next, %vectors ]
  %greatest.rest = phi $elements [ zeroinitializer, %entry ], [ %greatest.next, %vectors ]
  %reduced = call $element @llvm.vector.reduce.umax.$suffix($elements %greatest.rest)
  br label %head
head:
  %i = phi i64 [ %at.rest, %rest ], [ %i.next, %each ]
  %n.less = phi i64 [ %less.rest, %rest ], [ %n.less.next, %each ]
  %n.kept = phi i64 [ %kept.rest, %rest ], [ %n.kept.next, %each ]
  %top = phi $element [ %reduced, %rest ], [ %top.next, %each ]
  %is_left = icmp ult i64 %i, %count
  br i1 %is_left, label %each, label %done
each:
  %one.place = getelementptr $element, ptr %from, i64 %i
  %one = load $element, ptr %one.place, align $element_bytes
  %one.vector = insertelement $elements zeroinitializer, $element %one, i64 0
  %one.keys = call $elements @weft.sort.key$kind.$name($elements %one.vector, $elements %codes)
  %one.key = extractelement $elements %one.keys, i64 0
  %is_greater = icmp ugt $element %one.key, %top
  %top.next = select i1 %is_greater, $element %one.key, $element %top
  %one.below = icmp ult $element %one.key, %low
  %one.less = zext i1 %one.below to i64
  %n.less.next = add i64 %n.less, %one.less
  %one.up_to = icmp ule $element %one.key, %high
  %one.not_below = xor i1 %one.below, true
  %one.inside = and i1 %one.up_to, %one.not_below
  %one.wide = $widen $element %one.key to $key
  %one.target = getelementptr $key, ptr %to, i64 %n.kept
  store $key %one.wide, ptr %one.target, align $bytes
  %one.more = zext i1 %one.inside to i64
  %n.kept.next = add i64 %n.kept, %one.more
  %i.next = add i64 %i, 1
  br label %head
done:
  store i64 %n.less, ptr %counts, align 8
  %kept.place = getelementptr i64, ptr %counts, i64 1
  store i64 %n.kept, ptr %kept.place, align 8
  %top.wide = $widen_word $element %top to i64
  %top.place = getelementptr i64, ptr %counts, i64 2
  store i64 %top.wide, ptr %top.place, align 8
  ret void
}

define internal $elements @weft.sort.key$kind.$name($elements %values, $elements %codes) alwaysinline nounwind {
$key_of
}
