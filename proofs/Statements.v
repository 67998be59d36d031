(* The theorems as Coq prints them, and what they rest on. *)
From Coq Require Import Reals ZArith List.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Model Words Sound Mass Exact Link.
From Dpnoise.generated Require Import Exponentials Trials.
Open Scope R_scope.
Set Printing Width 120.

About trials_are_exact.
About pattern_and_values_are_independent.
About low_bits.
About low_and_high_bits.
About tables_are_sound.
About exponentials_agree.
About trials_all_agree.
Print Assumptions trials_are_exact.
