(* The model agrees with the code: on every row that the Rust code wrote, bit for bit. *)
From Coq Require Import ZArith List Floats Uint63 Bool.
From Dpnoise Require Import Model Sound Integers.
From Dpnoise.generated Require Import Exponentials Trials Numbers Decisions.
Import ListNotations.
Open Scope Z_scope.

Notation word := Uint63.to_Z.

(* t and the exponent; the result where operations are rounded one by one, and where they are fused. *)
Definition exponential_agrees (row : int * int * int * int) : bool :=
  let '(t, e, separate, fused) := row in
  let agrees f bits := PrimFloat.eqb (exp2_minus f (word e) (of_bits false t)) (of_bits false bits) in
  agrees false separate && agrees true fused.

Definition code (o : outcome) : Z := match o with Rejected => 0 | Accepted => 1 | Undecided => 2 | Tail => 3 end.

(* The bin word, two halves each of the offset and of the acceptance word; both outcomes; the sign and the magnitude. *)
Fixpoint trials_agree (t : tables) (rows : list int) : bool :=
  match rows with
  | bin :: o1 :: o2 :: a1 :: a2 :: separate :: fused :: negative :: magnitude :: rows =>
      let agrees f outcome :=
        let '(o, value) := trial f t (word bin) (Z.shiftl (word o1) 32 + word o2) (Z.shiftl (word a1) 32 + word a2) in
        (code o =? word outcome) && (value =? if (negative =? 1)%uint63 then - word magnitude else word magnitude) in
      agrees false separate && agrees true fused && trials_agree t rows
  | [] => true
  | _ => false
  end.

Theorem exponentials_agree : forallb exponential_agrees exponentials = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem trials_all_agree : forallb (fun '(_, t, rows) => trials_agree t rows) trials = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* A fraction and a byte for each digit; the sign and the magnitude of the number, and whether an entry stands for the
   rest. *)
Definition number_agrees (digits : list digit) (row : list (int * int) * bool * int * bool) : bool :=
  let '(words, negative, magnitude, rest) := row in
  let drawn := draw digits (map (fun '(fraction, head) => (word fraction, word head)) words) false true in
  (number digits drawn =? if negative then - word magnitude else word magnitude) && Bool.eqb (has_rest drawn) rest.

Theorem numbers_agree : forallb (fun '(_, digits, rows) => forallb (number_agrees digits) rows) numbers = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Definition at_precision (n : Z) : constants :=
  if n =? 4 then constants4 else if n =? 8 then constants8 else constants16.

(* A distribution, limbs and x; the bounds of the density. *)
Definition density_agrees (row : law * Z * Z * Z * Z) : bool :=
  let '(l, n, x, low, high) := row in
  let '(low', high') := density_bounds l at_precision n x in
  (low =? low') && (high =? high').

(* A distribution, A, W and x, the prefix and further words; whether U W < A f(x), and how many words were left. *)
Definition decision_agrees (row : law * Z * Z * Z * Z * list Z * bool * Z) : bool :=
  let '(l, a, w, x, prefix, words, answer, remaining) := row in
  match decide (bin_sides l at_precision w a x) prefix words with
  | Some (answer', words) => Bool.eqb answer answer' && (Z.of_nat (length words) =? remaining)
  | None => false
  end.

(* A distribution, where its tail starts, the shift, W and A, the prefix, the sign and further words; the value, if
   there is one, and how many words were left. *)
Definition tail_agrees (row : law * Z * Z * Z * Z * Z * bool * list Z * option Z * Z) : bool :=
  let '(l, start, shift, w, a, prefix, negative, words, value, remaining) := row in
  match tail l at_precision start shift w a prefix negative words with
  | Some (value', words) =>
      match value, value' with Some x, Some x' => x =? x' | None, None => true | _, _ => false end
      && (Z.of_nat (length words) =? remaining)
  | None => false
  end.

Theorem densities_agree : forallb density_agrees densities = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem decisions_agree : forallb decision_agrees decisions = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem tails_agree : forallb tail_agrees tails = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* How many rows of each kind that is. *)
Definition rows_of {A B : Type} (size : nat) (lists : list (A * list B)) : nat :=
  fold_right (fun '(_, rows) n => length rows / size + n)%nat 0%nat lists.
From Coq Require Import String.
Definition counts := [("exponentials", List.length exponentials); ("trials", rows_of 9 trials);
  ("numbers", rows_of 1 numbers); ("densities", List.length densities); ("decisions", List.length decisions);
  ("tails", List.length tails)]%string.
