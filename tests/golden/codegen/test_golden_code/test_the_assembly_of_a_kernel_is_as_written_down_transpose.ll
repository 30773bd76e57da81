define i32 @weft.kernel.permute_dims(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  br label %body
body:
  %.1 = load <8 x i32>, ptr %p0, align 4
  %.2 = getelementptr i32, ptr %p0, i64 8
  %.3 = load <8 x i32>, ptr %.2, align 4
  %.4 = getelementptr i32, ptr %p0, i64 16
  %.5 = load <8 x i32>, ptr %.4, align 4
  %.6 = getelementptr i32, ptr %p0, i64 24
  %.7 = load <8 x i32>, ptr %.6, align 4
  %.8 = getelementptr i32, ptr %p0, i64 32
  %.9 = load <8 x i32>, ptr %.8, align 4
  %.10 = getelementptr i32, ptr %p0, i64 40
  %.11 = load <8 x i32>, ptr %.10, align 4
  %.12 = getelementptr i32, ptr %p0, i64 48
  %.13 = load <8 x i32>, ptr %.12, align 4
  %.14 = getelementptr i32, ptr %p0, i64 56
  %.15 = load <8 x i32>, ptr %.14, align 4
  %.16 = shufflevector <8 x i32> %.1, <8 x i32> %.9, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %.17 = shufflevector <8 x i32> %.1, <8 x i32> %.9, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %.18 = shufflevector <8 x i32> %.3, <8 x i32> %.11, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %.19 = shufflevector <8 x i32> %.3, <8 x i32> %.11, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %.20 = shufflevector <8 x i32> %.5, <8 x i32> %.13, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %.21 = shufflevector <8 x i32> %.5, <8 x i32> %.13, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %.22 = shufflevector <8 x i32> %.7, <8 x i32> %.15, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %.23 = shufflevector <8 x i32> %.7, <8 x i32> %.15, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %.24 = shufflevector <8 x i32> %.16, <8 x i32> %.20, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.25 = shufflevector <8 x i32> %.16, <8 x i32> %.20, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.26 = shufflevector <8 x i32> %.18, <8 x i32> %.22, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.27 = shufflevector <8 x i32> %.18, <8 x i32> %.22, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.28 = shufflevector <8 x i32> %.17, <8 x i32> %.21, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.29 = shufflevector <8 x i32> %.17, <8 x i32> %.21, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.30 = shufflevector <8 x i32> %.19, <8 x i32> %.23, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.31 = shufflevector <8 x i32> %.19, <8 x i32> %.23, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.32 = shufflevector <8 x i32> %.24, <8 x i32> %.26, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.33 = shufflevector <8 x i32> %.24, <8 x i32> %.26, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.34 = shufflevector <8 x i32> %.25, <8 x i32> %.27, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.35 = shufflevector <8 x i32> %.25, <8 x i32> %.27, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.36 = shufflevector <8 x i32> %.28, <8 x i32> %.30, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.37 = shufflevector <8 x i32> %.28, <8 x i32> %.30, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  %.38 = shufflevector <8 x i32> %.29, <8 x i32> %.31, <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 4, i32 12, i32 5, i32 13>
  %.39 = shufflevector <8 x i32> %.29, <8 x i32> %.31, <8 x i32> <i32 2, i32 10, i32 3, i32 11, i32 6, i32 14, i32 7, i32 15>
  store <8 x i32> %.32, ptr %p1, align 4
  %.40 = getelementptr i32, ptr %p1, i64 8
  store <8 x i32> %.33, ptr %.40, align 4
  %.41 = getelementptr i32, ptr %p1, i64 16
  store <8 x i32> %.34, ptr %.41, align 4
  %.42 = getelementptr i32, ptr %p1, i64 24
  store <8 x i32> %.35, ptr %.42, align 4
  %.43 = getelementptr i32, ptr %p1, i64 32
  store <8 x i32> %.36, ptr %.43, align 4
  %.44 = getelementptr i32, ptr %p1, i64 40
  store <8 x i32> %.37, ptr %.44, align 4
  %.45 = getelementptr i32, ptr %p1, i64 48
  store <8 x i32> %.38, ptr %.45, align 4
  %.46 = getelementptr i32, ptr %p1, i64 56
  store <8 x i32> %.39, ptr %.46, align 4
  ret i32 0
}

