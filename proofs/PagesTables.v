(* Tables of a staircase law, as the Rust code made them, are sound, so that numbers from them are exact. *)
From Coq Require Import Reals ZArith List.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Model Pages Staircase.
From Dpnoise.generated Require Import PageRows.
Import ListNotations.
Open Scope Z_scope.

(* The tables of a staircase with epsilon = 11/2, width 27 and inner width 13. *)
Definition staircase_of_rows : staircase := Staircase (11, 2) 27 13.
Definition tables_of_staircase : list digit := [staircase1; staircase2; staircase3; staircase4].

Theorem tables_of_staircase_are_sound : sound_staircase staircase_of_rows staircase0 tables_of_staircase = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem staircase_is_exact x :
  is_lim_seq (fun tries => probability (staircase_law staircase_of_rows) staircase0 tables_of_staircase tries x)
    (staircase_law staircase_of_rows (Z.abs_nat x) * (if (x =? 0)%Z then 1 else 1/2))%R.
Proof.
  apply pages_are_exact, sound_staircase_is_sound; [reflexivity|exact tables_of_staircase_are_sound].
Qed.
