(* The tables and constants that the Rust code made are sound. *)
From Coq Require Import Reals ZArith List.
From Interval Require Import Tactic.
From Dpnoise Require Import Sound Integers Fixed.
From Dpnoise.generated Require Import Trials Numbers Decisions.

Theorem tables_are_sound : forallb (fun '(l, t, _) => sound l t) trials = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem digits_are_sound : forallb (fun '(l, digits, _) => sound_digits l digits) numbers = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Ltac decide_constants c bits :=
  split; [vm_compute; discriminate| | |reflexivity]; unfold c; cbn [limbs ln_2 log2_e];
  match goal with |- context [unit ?n] => let one := eval vm_compute in (unit n) in change (unit n) with one end;
  split; interval with (i_prec bits).

Theorem constants_are_sound : sound_constants constants4 /\ sound_constants constants8 /\ sound_constants constants16.
Proof.
  split; [|split].
  - decide_constants constants4 300%positive.
  - decide_constants constants8 600%positive.
  - decide_constants constants16 1100%positive.
Qed.
