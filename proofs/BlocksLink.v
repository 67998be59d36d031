(* What loops over blocks make of a stream whose bytes are a known function of their position: units and results are
   where the models have them. *)
From Coq Require Import ZArith List Bool.
From Dpnoise Require Import Model Blocks.
From Dpnoise.generated Require Import Numbers Loops.
Import ListNotations.
Open Scope Z_scope.

Definition byte (position : Z) : Z := Z.land (Z.shiftr ((position + 1) * 40503) 4) 255.
Definition bit (position : Z) : bool := Z.testbit (byte (Z.shiftr position 3)) (Z.land position 7).

(* The lanes of a run where no further words are drawn, and how many units were drawn. *)
Definition lanes_of (fetch : Z -> nat * layout) (length : nat) : list (list Z) :=
  let gain _ missing := let '(count, l) := fetch missing in Z.of_nat (count * lanes l) in
  filter (fun units => match units with [] => false | _ => true end)
    (run fetch gain (fun _ => 0%nat) 20 0 (Z.of_nat length) 0).

(* Whether every result is what its lane gives. *)
Definition all_agree {A : Type} (agrees : list Z -> A -> bool) (lanes : list (list Z)) (results : list A) : bool :=
  (List.length results <=? List.length lanes)%nat
  && forallb (fun '(units, result) => agrees units result) (combine lanes results).

(* The words of a number's digits: seven bytes of a fraction and one more, from the lowest up. *)
Fixpoint words_of (bytes : list Z) : list (Z * Z) :=
  match bytes with
  | b0 :: b1 :: b2 :: b3 :: b4 :: b5 :: b6 :: head :: bytes =>
      (fold_right (fun b word => b + 256 * word) 0 [b0; b1; b2; b3; b4; b5; b6], head) :: words_of bytes
  | _ => []
  end.

(* Digits, how many bytes were drawn, and the numbers. *)
Definition filled_agrees (row : list digit * Z * list Z) : bool :=
  let '(digits, drawn, numbers) := row in
  let lanes := lanes_of (fetch_numbers (List.length digits)) (List.length numbers) in
  let found units := number digits (draw digits (words_of (map byte units)) false true) in
  (Z.of_nat (List.length (concat lanes)) =? drawn)
  && all_agree (fun units value => found units =? value) lanes numbers.

(* Planes and thresholds, for data bits of 1 and of 0; how many bits come of it, and the bits as one number. *)
Definition uniform_of (units : list Z) : Z := fold_right (fun unit u => 2 * u + Z.b2z (bit unit)) 0 units.
Definition coins_agree (row : nat * Z * nat * Z) : bool :=
  let '(planes, threshold, length, coins) := row in
  all_agree (fun units i => Bool.eqb (uniform_of units <? threshold) (Z.testbit coins i))
    (lanes_of (fetch_tiles planes) length) (range 0 length).
Definition flipped_agree (row : nat * Z * Z * nat * Z) : bool :=
  let '(planes, p, q, length, reports) := row in
  all_agree (fun units i => Bool.eqb (uniform_of units <? if i mod 3 =? 0 then p else q) (Z.testbit reports i))
    (lanes_of (fetch_tiles planes) length) (range 0 length).

Theorem loops_agree :
  forallb filled_agrees filled && forallb coins_agree coins && forallb flipped_agree flipped = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

From Coq Require Import String.
Definition counts := [("numbers of loops", List.length (flat_map snd filled));
  ("coins of loops", fold_right (fun '(_, _, length, _) n => length + n)%nat 0%nat coins);
  ("flipped bits of loops", fold_right (fun '(_, _, length, _) n => length + n)%nat 0%nat flipped)]%string.
