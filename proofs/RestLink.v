(* The model of the rest agrees with the code: numbers that were resolved, and how many words were left. *)
From Coq Require Import ZArith List Bool.
From Dpnoise Require Import Model Sound Integers Rest Link.
From Dpnoise.generated Require Import Numbers Rests.
Import ListNotations.
Open Scope Z_scope.

(* The sides at the first precision are computed once. *)
Definition first_sides (l : law) (digits : list digit) : list (Z * list (Z * Z)) :=
  map (fun d => (step d, lacking_bounds l at_precision d (step d =? step (last digits d)) 4)) digits.
Definition sides_from (l : law) (first : list (Z * list (Z * Z))) (c : coin) (n : Z) : (Z * Z) * (Z * Z) :=
  match c, n with
  | Lacking d _ e, 4 =>
      match find (fun '(place, _) => place =? step d) first with
      | Some (_, bounds) => coin_sides (fun _ => nth (Z.to_nat e) bounds (0, 0)) n
      | None => ((0, 0), (0, 0))
      end
  | _, _ => sides_of_number l at_precision c n
  end.

(* The entries as they were drawn, and further words; the number, and how many words were left. *)
Definition rest_agrees (l : law) (digits : list digit) sides (row : list Z * list Z * Z * Z) : bool :=
  let '(entries, words, number, remaining) := row in
  match run sides (resolve l 25 digits entries) words with
  | Some (number', words) => (number =? number') && (Z.of_nat (length words) =? remaining)
  | None => false
  end.

Theorem rests_agree : forallb (fun '((l, digits, _), rows) =>
  let sides := sides_from l (first_sides l digits) in forallb (rest_agrees l digits sides) rows) (combine numbers
    rests) = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

From Coq Require Import String.
Definition counts := [("rests", rows_of 1 (map (fun rows => (tt, rows)) rests))]%string.
