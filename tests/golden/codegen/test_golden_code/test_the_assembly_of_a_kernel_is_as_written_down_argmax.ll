@weft.constant.float.0xFFF0000000000000 = internal global float 0xFFF0000000000000
define i32 @weft.kernel.argmax(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  %.1 = alloca [16 x i8], align 64
  %.4 = alloca [64 x i8], align 64
  %.5 = alloca [64 x i8], align 64
  %.6 = alloca [128 x i8], align 64
  br label %body
body:
  %.16 = trunc i64 0 to i32
  %.17 = insertelement <8 x i32> poison, i32 %.16, i64 0
  %.18 = shufflevector <8 x i32> %.17, <8 x i32> poison, <8 x i32> zeroinitializer
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
  %.9 = mul i64 %for.1.i, 24
  %.10 = getelementptr float, ptr %p0, i64 %.9
  %.11 = load <8 x float>, ptr %.10, align 4
  %constant.1 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.2 = insertelement <8 x float> poison, float %constant.1, i64 0
  %constant.3 = shufflevector <8 x float> %constant.2, <8 x float> poison, <8 x i32> zeroinitializer
  %.12 = fcmp ole <8 x float> %.11, %constant.3
  %.13 = xor <8 x i1> %.12, splat (i1 true)
  %constant.4 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.5 = insertelement <8 x float> poison, float %constant.4, i64 0
  %constant.6 = shufflevector <8 x float> %constant.5, <8 x float> poison, <8 x i32> zeroinitializer
  %.14 = fcmp oeq <8 x float> %constant.6, %constant.6
  %.15 = and <8 x i1> %.13, %.14
  %.19 = select <8 x i1> %.15, <8 x i32> %.18, <8 x i32> splat (i32 0)
  store <8 x i32> %.19, ptr %.4, align 4
  %constant.7 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.8 = insertelement <8 x float> poison, float %constant.7, i64 0
  %constant.9 = shufflevector <8 x float> %constant.8, <8 x float> poison, <8 x i32> zeroinitializer
  %.20 = select <8 x i1> %.15, <8 x float> %.11, <8 x float> %constant.9
  store <8 x float> %.20, ptr %.5, align 4
  %.21 = getelementptr float, ptr %.10, i64 8
  %.22 = load <8 x float>, ptr %.21, align 4
  %constant.10 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.11 = insertelement <8 x float> poison, float %constant.10, i64 0
  %constant.12 = shufflevector <8 x float> %constant.11, <8 x float> poison, <8 x i32> zeroinitializer
  %.23 = fcmp ole <8 x float> %.22, %constant.12
  %.24 = xor <8 x i1> %.23, splat (i1 true)
  %.25 = and <8 x i1> %.24, %.14
  %.26 = select <8 x i1> %.25, <8 x i32> %.18, <8 x i32> splat (i32 0)
  store <8 x i32> %.26, ptr %.7, align 4
  %constant.13 = load float, ptr @weft.constant.float.0xFFF0000000000000
  %constant.14 = insertelement <8 x float> poison, float %constant.13, i64 0
  %constant.15 = shufflevector <8 x float> %constant.14, <8 x float> poison, <8 x i32> zeroinitializer
  %.27 = select <8 x i1> %.25, <8 x float> %.22, <8 x float> %constant.15
  store <8 x float> %.27, ptr %.8, align 4
  %.28 = getelementptr float, ptr %.10, i64 16
  %.29 = load <8 x float>, ptr %.28, align 4
  %.30 = fcmp ole <8 x float> %.29, %.20
  %.31 = xor <8 x i1> %.30, splat (i1 true)
  %.32 = fcmp oeq <8 x float> %.20, %.20
  %.33 = and <8 x i1> %.31, %.32
  %.34 = select <8 x i1> %.33, <8 x i32> splat (i32 1), <8 x i32> %.19
  store <8 x i32> %.34, ptr %.4, align 4
  %.35 = select <8 x i1> %.33, <8 x float> %.29, <8 x float> %.20
  store <8 x float> %.35, ptr %.5, align 4
  %.36 = sext <8 x i32> %.34 to <8 x i64>
  %.37 = mul <8 x i64> %.36, splat (i64 16)
  %.38 = add <8 x i64> splat (i64 0), <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %.39 = add <8 x i64> %.37, %.38
  store <8 x i64> %.39, ptr %.6, align 8
  %.40 = sext <8 x i32> %.26 to <8 x i64>
  %.41 = mul <8 x i64> %.40, splat (i64 16)
  %.42 = add <8 x i64> splat (i64 8), <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %.43 = add <8 x i64> %.41, %.42
  %.44 = getelementptr i64, ptr %.6, i64 8
  store <8 x i64> %.43, ptr %.44, align 8
  %.45 = fcmp ogt <8 x float> %.35, %.27
  %.46 = fcmp une <8 x float> %.35, %.35
  %.47 = fcmp oeq <8 x float> %.27, %.27
  %.48 = and <8 x i1> %.46, %.47
  %.49 = or <8 x i1> %.45, %.48
  %.50 = fcmp oeq <8 x float> %.35, %.27
  %.51 = fcmp une <8 x float> %.27, %.27
  %.52 = and <8 x i1> %.46, %.51
  %.53 = or <8 x i1> %.50, %.52
  %.54 = icmp slt <8 x i64> %.39, %.43
  %.55 = and <8 x i1> %.53, %.54
  %.56 = or <8 x i1> %.49, %.55
  %.57 = select <8 x i1> %.56, <8 x i64> %.39, <8 x i64> %.43
  store <8 x i64> %.57, ptr %.6, align 8
  %.58 = icmp slt <8 x i64> %.57, %.43
  %.59 = and <8 x i1> %.53, %.58
  %.60 = or <8 x i1> %.49, %.59
  %.61 = select <8 x i1> %.60, <8 x float> %.35, <8 x float> %.27
  store <8 x float> %.61, ptr %.5, align 4
  %.62 = load <4 x float>, ptr %.5, align 4
  %.63 = getelementptr float, ptr %.5, i64 4
  %.64 = load <4 x float>, ptr %.63, align 4
  %.65 = fcmp ogt <4 x float> %.62, %.64
  %.66 = fcmp une <4 x float> %.62, %.62
  %.67 = fcmp oeq <4 x float> %.64, %.64
  %.68 = and <4 x i1> %.66, %.67
  %.69 = or <4 x i1> %.65, %.68
  %.70 = fcmp oeq <4 x float> %.62, %.64
  %.71 = fcmp une <4 x float> %.64, %.64
  %.72 = and <4 x i1> %.66, %.71
  %.73 = or <4 x i1> %.70, %.72
  %.74 = load <4 x i64>, ptr %.6, align 8
  %.75 = getelementptr i64, ptr %.6, i64 4
  %.76 = load <4 x i64>, ptr %.75, align 8
  %.77 = icmp slt <4 x i64> %.74, %.76
  %.78 = and <4 x i1> %.73, %.77
  %.79 = or <4 x i1> %.69, %.78
  %.80 = select <4 x i1> %.79, <4 x i64> %.74, <4 x i64> %.76
  store <4 x i64> %.80, ptr %.6, align 8
  %.81 = icmp slt <4 x i64> %.80, %.76
  %.82 = and <4 x i1> %.73, %.81
  %.83 = or <4 x i1> %.69, %.82
  %.84 = select <4 x i1> %.83, <4 x float> %.62, <4 x float> %.64
  store <4 x float> %.84, ptr %.5, align 4
  %.85 = load <2 x float>, ptr %.5, align 4
  %.86 = getelementptr float, ptr %.5, i64 2
  %.87 = load <2 x float>, ptr %.86, align 4
  %.88 = fcmp ogt <2 x float> %.85, %.87
  %.89 = fcmp une <2 x float> %.85, %.85
  %.90 = fcmp oeq <2 x float> %.87, %.87
  %.91 = and <2 x i1> %.89, %.90
  %.92 = or <2 x i1> %.88, %.91
  %.93 = fcmp oeq <2 x float> %.85, %.87
  %.94 = fcmp une <2 x float> %.87, %.87
  %.95 = and <2 x i1> %.89, %.94
  %.96 = or <2 x i1> %.93, %.95
  %.97 = load <2 x i64>, ptr %.6, align 8
  %.98 = getelementptr i64, ptr %.6, i64 2
  %.99 = load <2 x i64>, ptr %.98, align 8
  %.100 = icmp slt <2 x i64> %.97, %.99
  %.101 = and <2 x i1> %.96, %.100
  %.102 = or <2 x i1> %.92, %.101
  %.103 = select <2 x i1> %.102, <2 x i64> %.97, <2 x i64> %.99
  store <2 x i64> %.103, ptr %.6, align 8
  %.104 = icmp slt <2 x i64> %.103, %.99
  %.105 = and <2 x i1> %.96, %.104
  %.106 = or <2 x i1> %.92, %.105
  %.107 = select <2 x i1> %.106, <2 x float> %.85, <2 x float> %.87
  store <2 x float> %.107, ptr %.5, align 4
  %.108 = load float, ptr %.5, align 4
  %.109 = getelementptr float, ptr %.5, i64 1
  %.110 = load float, ptr %.109, align 4
  %.111 = fcmp ogt float %.108, %.110
  br i1 %.111, label %done.12, label %more.11
more.11:
  %.112 = load float, ptr %.5, align 4
  %.113 = fcmp une float %.112, %.112
  br i1 %.113, label %more.13, label %done.14
more.13:
  %.114 = load float, ptr %.109, align 4
  %.115 = fcmp oeq float %.114, %.114
  br label %done.14
done.14:
  %.116 = phi i1 [ false, %more.11 ], [ %.115, %more.13 ]
  br label %done.12
done.12:
  %.117 = phi i1 [ true, %for.1 ], [ %.116, %done.14 ]
  br i1 %.117, label %done.16, label %more.15
more.15:
  %.118 = load float, ptr %.5, align 4
  %.119 = load float, ptr %.109, align 4
  %.120 = fcmp oeq float %.118, %.119
  br i1 %.120, label %done.18, label %more.17
more.17:
  %.121 = load float, ptr %.5, align 4
  %.122 = fcmp une float %.121, %.121
  br i1 %.122, label %more.19, label %done.20
more.19:
  %.123 = load float, ptr %.109, align 4
  %.124 = fcmp une float %.123, %.123
  br label %done.20
done.20:
  %.125 = phi i1 [ false, %more.17 ], [ %.124, %more.19 ]
  br label %done.18
done.18:
  %.126 = phi i1 [ true, %more.15 ], [ %.125, %done.20 ]
  br i1 %.126, label %more.21, label %done.22
more.21:
  %.127 = load i64, ptr %.6, align 8
  %.128 = getelementptr i64, ptr %.6, i64 1
  %.129 = load i64, ptr %.128, align 8
  %.130 = icmp slt i64 %.127, %.129
  br label %done.22
done.22:
  %.131 = phi i1 [ false, %done.18 ], [ %.130, %more.21 ]
  br label %done.16
done.16:
  %.132 = phi i1 [ true, %done.12 ], [ %.131, %done.22 ]
  %.133 = load i64, ptr %.6, align 8
  %.134 = getelementptr i64, ptr %.6, i64 1
  %.135 = load i64, ptr %.134, align 8
  %.136 = select i1 %.132, i64 %.133, i64 %.135
  store i64 %.136, ptr %.6, align 8
  %.137 = load float, ptr %.5, align 4
  %.138 = load float, ptr %.109, align 4
  %.139 = fcmp ogt float %.137, %.138
  br i1 %.139, label %done.24, label %more.23
more.23:
  %.140 = load float, ptr %.5, align 4
  %.141 = fcmp une float %.140, %.140
  br i1 %.141, label %more.25, label %done.26
more.25:
  %.142 = load float, ptr %.109, align 4
  %.143 = fcmp oeq float %.142, %.142
  br label %done.26
done.26:
  %.144 = phi i1 [ false, %more.23 ], [ %.143, %more.25 ]
  br label %done.24
done.24:
  %.145 = phi i1 [ true, %done.16 ], [ %.144, %done.26 ]
  br i1 %.145, label %done.28, label %more.27
more.27:
  %.146 = load float, ptr %.5, align 4
  %.147 = load float, ptr %.109, align 4
  %.148 = fcmp oeq float %.146, %.147
  br i1 %.148, label %done.30, label %more.29
more.29:
  %.149 = load float, ptr %.5, align 4
  %.150 = fcmp une float %.149, %.149
  br i1 %.150, label %more.31, label %done.32
more.31:
  %.151 = load float, ptr %.109, align 4
  %.152 = fcmp une float %.151, %.151
  br label %done.32
done.32:
  %.153 = phi i1 [ false, %more.29 ], [ %.152, %more.31 ]
  br label %done.30
done.30:
  %.154 = phi i1 [ true, %more.27 ], [ %.153, %done.32 ]
  br i1 %.154, label %more.33, label %done.34
more.33:
  %.155 = load i64, ptr %.6, align 8
  %.156 = load i64, ptr %.134, align 8
  %.157 = icmp slt i64 %.155, %.156
  br label %done.34
done.34:
  %.158 = phi i1 [ false, %done.30 ], [ %.157, %more.33 ]
  br label %done.28
done.28:
  %.159 = phi i1 [ true, %done.24 ], [ %.158, %done.34 ]
  %.160 = load float, ptr %.5, align 4
  %.161 = load float, ptr %.109, align 4
  %.162 = select i1 %.159, float %.160, float %.161
  store float %.162, ptr %.5, align 4
  %.163 = load float, ptr %.3, align 4
  %.164 = fcmp ogt float %.163, %.162
  br i1 %.164, label %done.36, label %more.35
more.35:
  %.165 = load float, ptr %.3, align 4
  %.166 = fcmp une float %.165, %.165
  br i1 %.166, label %more.37, label %done.38
more.37:
  %.167 = load float, ptr %.5, align 4
  %.168 = fcmp oeq float %.167, %.167
  br label %done.38
done.38:
  %.169 = phi i1 [ false, %more.35 ], [ %.168, %more.37 ]
  br label %done.36
done.36:
  %.170 = phi i1 [ true, %done.28 ], [ %.169, %done.38 ]
  br i1 %.170, label %done.40, label %more.39
more.39:
  %.171 = load float, ptr %.3, align 4
  %.172 = load float, ptr %.5, align 4
  %.173 = fcmp oeq float %.171, %.172
  br i1 %.173, label %done.42, label %more.41
more.41:
  %.174 = load float, ptr %.3, align 4
  %.175 = fcmp une float %.174, %.174
  br i1 %.175, label %more.43, label %done.44
more.43:
  %.176 = load float, ptr %.5, align 4
  %.177 = fcmp une float %.176, %.176
  br label %done.44
done.44:
  %.178 = phi i1 [ false, %more.41 ], [ %.177, %more.43 ]
  br label %done.42
done.42:
  %.179 = phi i1 [ true, %more.39 ], [ %.178, %done.44 ]
  br i1 %.179, label %more.45, label %done.46
more.45:
  %.180 = load i64, ptr %.2, align 8
  %.181 = load i64, ptr %.6, align 8
  %.182 = icmp slt i64 %.180, %.181
  br label %done.46
done.46:
  %.183 = phi i1 [ false, %done.42 ], [ %.182, %more.45 ]
  br label %done.40
done.40:
  %.184 = phi i1 [ true, %done.36 ], [ %.183, %done.46 ]
  %.185 = load i64, ptr %.2, align 8
  %.186 = load i64, ptr %.6, align 8
  %.187 = select i1 %.184, i64 %.185, i64 %.186
  %.188 = load float, ptr %.3, align 4
  %.189 = load float, ptr %.5, align 4
  %.190 = fcmp ogt float %.188, %.189
  br i1 %.190, label %done.48, label %more.47
more.47:
  %.191 = load float, ptr %.3, align 4
  %.192 = fcmp une float %.191, %.191
  br i1 %.192, label %more.49, label %done.50
more.49:
  %.193 = load float, ptr %.5, align 4
  %.194 = fcmp oeq float %.193, %.193
  br label %done.50
done.50:
  %.195 = phi i1 [ false, %more.47 ], [ %.194, %more.49 ]
  br label %done.48
done.48:
  %.196 = phi i1 [ true, %done.40 ], [ %.195, %done.50 ]
  br i1 %.196, label %done.52, label %more.51
more.51:
  %.197 = load float, ptr %.3, align 4
  %.198 = load float, ptr %.5, align 4
  %.199 = fcmp oeq float %.197, %.198
  br i1 %.199, label %done.54, label %more.53
more.53:
  %.200 = load float, ptr %.3, align 4
  %.201 = fcmp une float %.200, %.200
  br i1 %.201, label %more.55, label %done.56
more.55:
  %.202 = load float, ptr %.5, align 4
  %.203 = fcmp une float %.202, %.202
  br label %done.56
done.56:
  %.204 = phi i1 [ false, %more.53 ], [ %.203, %more.55 ]
  br label %done.54
done.54:
  %.205 = phi i1 [ true, %more.51 ], [ %.204, %done.56 ]
  br i1 %.205, label %more.57, label %done.58
more.57:
  %.206 = load i64, ptr %.2, align 8
  %.207 = load i64, ptr %.6, align 8
  %.208 = icmp slt i64 %.206, %.207
  br label %done.58
done.58:
  %.209 = phi i1 [ false, %done.54 ], [ %.208, %more.57 ]
  br label %done.52
done.52:
  %.210 = phi i1 [ true, %done.48 ], [ %.209, %done.58 ]
  %.211 = load float, ptr %.3, align 4
  %.212 = load float, ptr %.5, align 4
  %.213 = select i1 %.210, float %.211, float %.212
  store i64 %.187, ptr %.2, align 8
  store float %.213, ptr %.3, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.214 = icmp ne i64 %for.1.n, 4
  br i1 %.214, label %for.1, label %for.done.3
for.done.3:
  ret i32 0
}

