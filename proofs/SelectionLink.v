(* The models of selection agree with the code, on every row that it wrote, and the rates that it made are near. *)
From Coq Require Import ZArith List Floats Bool String.
From Dpnoise Require Import Sound Integers Weights Uniform Candidates Link.
From Dpnoise.generated Require Import Selections.
Import ListNotations.
Open Scope Z_scope.

(* A scale in steps with the rate. *)
Definition for_all {A : Type} (agrees : law -> float -> A -> bool) (groups : list ((law * float) * list A)) : bool :=
  forallb (fun '((l, rate), rows) => forallb (agrees l rate) rows) groups.
Definition leaves {A : Type} (same : A -> bool) (remaining : Z) (result : drawn A) : bool :=
  match result with Some (found, words) => same found && (Z.of_nat (List.length words) =? remaining) | None => false
    end.

Theorem rates_are_near : forallb (fun '((l, rate), _) => sound_rate l rate) weights = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* A depth and its weight. *)
Theorem weights_agree : for_all (fun _ rate '(depth, w) => weight rate depth =? w) weights = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* A weight, a word, and whether the coin shows heads. *)
Theorem coins_agree : forallb (fun '(w, word, head) => Bool.eqb (shows_head w word) head) coins = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* n, groups of 128 bits; the number below n, and how many groups were remaining. *)
Theorem whole_numbers_agree :
  forallb (fun '(n, words, v, remaining) => leaves (Z.eqb v) remaining (uniform_below n words)) whole_numbers = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* A proposal and words; whether it was accepted, and how many words were remaining. *)
Theorem acceptances_agree : for_all (fun l rate '(p, words, answer, remaining) =>
  leaves (Bool.eqb answer) remaining (accepts l rate at_precision p words)) acceptances = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* The mechanism, scores as runs of equal ones, and words; then a word and its place, the index chosen, and how many
   words were remaining. *)
Definition choice_agrees (choice : (law * float) * bool * list (Z * Z) * list Z * list (Z * Z * Z * Z)) : bool :=
  let '((l, rate), is_softmax, runs, words, rows) := choice in
  let scores := flat_map (fun '(count, score) => repeat score (Z.to_nat count)) runs in
  forallb (fun '(place, word, index, remaining) =>
    leaves (Z.eqb index) remaining
      ((if is_softmax then softmax else permute_and_flip) l rate at_precision scores
        (firstn (Z.to_nat place) words ++ word :: skipn (S (Z.to_nat place)) words))) rows.
Theorem choices_agree : forallb choice_agrees choices = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Definition rows_of {A B : Type} (groups : list (A * list B)) : nat := List.length (flat_map snd groups).
Definition counts := [("weights", rows_of weights); ("coins of heads", List.length coins);
  ("whole numbers", List.length whole_numbers); ("acceptances", rows_of acceptances);
  ("choices", rows_of choices)]%string.
