declare <8 x float> @llvm.maximum.v8f32(<8 x float>, <8 x float>)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>)
declare <2 x float> @llvm.maximum.v2f32(<2 x float>, <2 x float>)
declare float @llvm.maximum.f32(float, float)
declare <8 x i32> @llvm.smin.v8i32(<8 x i32>, <8 x i32>)
declare <4 x i32> @llvm.smin.v4i32(<4 x i32>, <4 x i32>)
declare <2 x i32> @llvm.smin.v2i32(<2 x i32>, <2 x i32>)
declare i32 @llvm.smin.i32(i32, i32)
@weft.constant.float.0xFFF0000000000000 = internal global float 0xFFF0000000000000
define i32 @weft.kernel.argmax(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  %.1 = alloca [16 x i8], align 64
  %.4 = alloca [64 x i8], align 64
  %.5 = alloca [64 x i8], align 64
  %.6 = alloca [64 x i8], align 64
  %.9 = alloca [64 x i8], align 64
  %.52 = alloca [64 x i8], align 64
  br label %body
body:
  %.17 = trunc i64 0 to i32
  %.18 = insertelement <8 x i32> poison, i32 %.17, i64 0
  %.19 = shufflevector <8 x i32> %.18, <8 x i32> poison, <8 x i32> zeroinitializer
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  %.2 = getelementptr i64, ptr %p1, i64 %for.1.i
  store i64 9223372036854775807, ptr %.2, align 8
  %.3 = getelementptr float, ptr %.1, i64 %for.1.i
  store float 0xFFF0000000000000, ptr %.3, align 4
  store <8 x i32> splat (i32 0), ptr %.4, align 4
  store <8 x float> splat (float 0xFFF0000000000000), ptr %.5, align 4
  %.7 = getelementptr i32, ptr %.4, i64 8
  store <8 x i32> splat (i32 0), ptr %.7, align 4
  %.8 = getelementptr float, ptr %.5, i64 8
  store <8 x float> splat (float 0xFFF0000000000000), ptr %.8, align 4
  %.10 = mul i64 %for.1.i, 24
  %.11 = getelementptr float, ptr %p0, i64 %.10
  %.12 = load <8 x float>, ptr %.11, align 4
  store <8 x float> %.12, ptr %.9, align 4
  %constant.1 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.2 = insertelement <8 x float> poison, float %constant.1, i64 0
  %constant.3 = shufflevector <8 x float> %constant.2, <8 x float> poison, <8 x i32> zeroinitializer
  %.13 = fcmp ole <8 x float> %.12, %constant.3
  %.14 = xor <8 x i1> %.13, splat (i1 true)
  %constant.4 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.5 = insertelement <8 x float> poison, float %constant.4, i64 0
  %constant.6 = shufflevector <8 x float> %constant.5, <8 x float> poison, <8 x i32> zeroinitializer
  %.15 = fcmp oeq <8 x float> %constant.6, %constant.6
  %.16 = and <8 x i1> %.14, %.15
  %.20 = select <8 x i1> %.16, <8 x i32> %.19, <8 x i32> splat (i32 0)
  store <8 x i32> %.20, ptr %.4, align 4
  %constant.7 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.8 = insertelement <8 x float> poison, float %constant.7, i64 0
  %constant.9 = shufflevector <8 x float> %constant.8, <8 x float> poison, <8 x i32> zeroinitializer
  %.21 = select <8 x i1> %.16, <8 x float> %.12, <8 x float> %constant.9
  store <8 x float> %.21, ptr %.5, align 4
  %.22 = getelementptr float, ptr %.11, i64 8
  %.23 = load <8 x float>, ptr %.22, align 4
  %.24 = getelementptr float, ptr %.9, i64 8
  store <8 x float> %.23, ptr %.24, align 4
  %constant.10 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.11 = insertelement <8 x float> poison, float %constant.10, i64 0
  %constant.12 = shufflevector <8 x float> %constant.11, <8 x float> poison, <8 x i32> zeroinitializer
  %.25 = fcmp ole <8 x float> %.23, %constant.12
  %.26 = xor <8 x i1> %.25, splat (i1 true)
  %.27 = and <8 x i1> %.26, %.15
  %.28 = select <8 x i1> %.27, <8 x i32> %.19, <8 x i32> splat (i32 0)
  store <8 x i32> %.28, ptr %.7, align 4
  %constant.13 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.14 = insertelement <8 x float> poison, float %constant.13, i64 0
  %constant.15 = shufflevector <8 x float> %constant.14, <8 x float> poison, <8 x i32> zeroinitializer
  %.29 = select <8 x i1> %.27, <8 x float> %.23, <8 x float> %constant.15
  store <8 x float> %.29, ptr %.8, align 4
  %.30 = getelementptr float, ptr %.11, i64 16
  %.31 = load <8 x float>, ptr %.30, align 4
  store <8 x float> %.31, ptr %.9, align 4
  %.32 = fcmp ole <8 x float> %.31, %.21
  %.33 = xor <8 x i1> %.32, splat (i1 true)
  %.34 = fcmp oeq <8 x float> %.21, %.21
  %.35 = and <8 x i1> %.33, %.34
  %.36 = select <8 x i1> %.35, <8 x i32> splat (i32 1), <8 x i32> %.20
  store <8 x i32> %.36, ptr %.4, align 4
  %.37 = select <8 x i1> %.35, <8 x float> %.31, <8 x float> %.21
  store <8 x float> %.37, ptr %.5, align 4
  store <8 x float> %.37, ptr %.6, align 4
  %.38 = getelementptr float, ptr %.6, i64 8
  store <8 x float> %.29, ptr %.38, align 4
  %.39 = call nsz <8 x float> @llvm.maximum.v8f32(<8 x float> %.37, <8 x float> %.29)
  store <8 x float> %.39, ptr %.6, align 4
  %.40 = load <4 x float>, ptr %.6, align 4
  %.41 = getelementptr float, ptr %.6, i64 4
  %.42 = load <4 x float>, ptr %.41, align 4
  %.43 = call nsz <4 x float> @llvm.maximum.v4f32(<4 x float> %.40, <4 x float> %.42)
  store <4 x float> %.43, ptr %.6, align 4
  %.44 = load <2 x float>, ptr %.6, align 4
  %.45 = getelementptr float, ptr %.6, i64 2
  %.46 = load <2 x float>, ptr %.45, align 4
  %.47 = call nsz <2 x float> @llvm.maximum.v2f32(<2 x float> %.44, <2 x float> %.46)
  store <2 x float> %.47, ptr %.6, align 4
  %.48 = load float, ptr %.6, align 4
  %.49 = getelementptr float, ptr %.6, i64 1
  %.50 = load float, ptr %.49, align 4
  %.51 = call nsz float @llvm.maximum.f32(float %.48, float %.50)
  store float %.51, ptr %.6, align 4
  %.53 = insertelement <8 x float> poison, float %.51, i64 0
  %.54 = shufflevector <8 x float> %.53, <8 x float> poison, <8 x i32> zeroinitializer
  %.55 = fcmp oeq <8 x float> %.37, %.54
  %.56 = fcmp une <8 x float> %.37, %.37
  %.57 = fcmp une float %.51, %.51
  %.58 = select i1 %.57, <8 x i1> splat (i1 true), <8 x i1> zeroinitializer
  %.59 = and <8 x i1> %.56, %.58
  %.60 = or <8 x i1> %.55, %.59
  %.61 = mul <8 x i32> %.36, splat (i32 16)
  %.62 = add <8 x i64> splat (i64 0), <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %.63 = trunc <8 x i64> %.62 to <8 x i32>
  %.64 = add <8 x i32> %.61, %.63
  %.65 = select <8 x i1> %.60, <8 x i32> %.64, <8 x i32> splat (i32 2147483647)
  store <8 x i32> %.65, ptr %.52, align 4
  %.66 = fcmp oeq <8 x float> %.29, %.54
  %.67 = fcmp une <8 x float> %.29, %.29
  %.68 = and <8 x i1> %.67, %.58
  %.69 = or <8 x i1> %.66, %.68
  %.70 = mul <8 x i32> %.28, splat (i32 16)
  %.71 = add <8 x i64> splat (i64 8), <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %.72 = trunc <8 x i64> %.71 to <8 x i32>
  %.73 = add <8 x i32> %.70, %.72
  %.74 = select <8 x i1> %.69, <8 x i32> %.73, <8 x i32> splat (i32 2147483647)
  %.75 = getelementptr i32, ptr %.52, i64 8
  store <8 x i32> %.74, ptr %.75, align 4
  %.76 = call <8 x i32> @llvm.smin.v8i32(<8 x i32> %.65, <8 x i32> %.74)
  store <8 x i32> %.76, ptr %.52, align 4
  %.77 = load <4 x i32>, ptr %.52, align 4
  %.78 = getelementptr i32, ptr %.52, i64 4
  %.79 = load <4 x i32>, ptr %.78, align 4
  %.80 = call <4 x i32> @llvm.smin.v4i32(<4 x i32> %.77, <4 x i32> %.79)
  store <4 x i32> %.80, ptr %.52, align 4
  %.81 = load <2 x i32>, ptr %.52, align 4
  %.82 = getelementptr i32, ptr %.52, i64 2
  %.83 = load <2 x i32>, ptr %.82, align 4
  %.84 = call <2 x i32> @llvm.smin.v2i32(<2 x i32> %.81, <2 x i32> %.83)
  store <2 x i32> %.84, ptr %.52, align 4
  %.85 = load i32, ptr %.52, align 4
  %.86 = getelementptr i32, ptr %.52, i64 1
  %.87 = load i32, ptr %.86, align 4
  %.88 = call i32 @llvm.smin.i32(i32 %.85, i32 %.87)
  store i32 %.88, ptr %.52, align 4
  %.89 = sext i32 %.88 to i64
  %.90 = fcmp ogt float 0xFFF0000000000000, %.51
  br i1 %.90, label %done.11, label %more.10
more.10:
  %.91 = load float, ptr %.3, align 4
  %.92 = fcmp une float %.91, %.91
  %.93 = fcmp oeq float %.51, %.51
  %.94 = and i1 %.92, %.93
  br label %done.11
done.11:
  %.95 = phi i1 [ true, %for.1 ], [ %.94, %more.10 ]
  br i1 %.95, label %done.13, label %more.12
more.12:
  %.96 = load float, ptr %.3, align 4
  %.97 = fcmp oeq float %.96, %.51
  br i1 %.97, label %done.15, label %more.14
more.14:
  %.98 = load float, ptr %.3, align 4
  %.99 = fcmp une float %.98, %.98
  %.100 = and i1 %.99, %.57
  br label %done.15
done.15:
  %.101 = phi i1 [ true, %more.12 ], [ %.100, %more.14 ]
  br i1 %.101, label %more.16, label %done.17
more.16:
  %.102 = load i64, ptr %.2, align 8
  %.103 = icmp slt i64 %.102, %.89
  br label %done.17
done.17:
  %.104 = phi i1 [ false, %done.15 ], [ %.103, %more.16 ]
  br label %done.13
done.13:
  %.105 = phi i1 [ true, %done.11 ], [ %.104, %done.17 ]
  %.106 = load i64, ptr %.2, align 8
  %.107 = select i1 %.105, i64 %.106, i64 %.89
  %.108 = load float, ptr %.3, align 4
  %.109 = fcmp ogt float %.108, %.51
  br i1 %.109, label %done.19, label %more.18
more.18:
  %.110 = load float, ptr %.3, align 4
  %.111 = fcmp une float %.110, %.110
  %.112 = fcmp oeq float %.51, %.51
  %.113 = and i1 %.111, %.112
  br label %done.19
done.19:
  %.114 = phi i1 [ true, %done.13 ], [ %.113, %more.18 ]
  br i1 %.114, label %done.21, label %more.20
more.20:
  %.115 = load float, ptr %.3, align 4
  %.116 = fcmp oeq float %.115, %.51
  br i1 %.116, label %done.23, label %more.22
more.22:
  %.117 = load float, ptr %.3, align 4
  %.118 = fcmp une float %.117, %.117
  %.119 = and i1 %.118, %.57
  br label %done.23
done.23:
  %.120 = phi i1 [ true, %more.20 ], [ %.119, %more.22 ]
  br i1 %.120, label %more.24, label %done.25
more.24:
  %.121 = load i64, ptr %.2, align 8
  %.122 = icmp slt i64 %.121, %.89
  br label %done.25
done.25:
  %.123 = phi i1 [ false, %done.23 ], [ %.122, %more.24 ]
  br label %done.21
done.21:
  %.124 = phi i1 [ true, %done.19 ], [ %.123, %done.25 ]
  %.125 = load float, ptr %.3, align 4
  %.126 = select i1 %.124, float %.125, float %.51
  store i64 %.107, ptr %.2, align 8
  store float %.126, ptr %.3, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.127 = icmp ne i64 %for.1.n, 4
  br i1 %.127, label %for.1, label %for.done.3
for.done.3:
  ret i32 0
}

