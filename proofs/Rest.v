(* The rest of alias tables: what an entry 63 stands for, number by number and digit by digit, as alias.rs draws it. *)
From Coq Require Import ZArith List Bool.
From Dpnoise Require Import Model Sound Integers.
Import ListNotations.
Open Scope Z_scope.

(* An entry that words fall short of: each is proposed as often, and kept if the coin of what it lacks shows heads. *)
Definition rest {C : Type} (fuel : nat) (lacking : Z -> C) : program C Z := until_some fuel (proposal 6 lacking).

(* The coins of a digit: of what an entry lacks, 63 what none has, and of the tail. *)
Inductive coin := Lacking (d : digit) (last : bool) (e : Z) | OfTail (c : tail_coin).

Section Numbers.
Variables (l : law) (fuel : nat).

(* An entry from 63 on. *)
Definition entry_beyond (d : digit) : program coin Z :=
  and_then (until_some fuel (and_then (heads fuel (OfTail (Decay (63 * step d) (step d))))
    (fun beyond => if_excess l (OfTail (Excess beyond)) beyond))) (fun beyond => Gives (63 + beyond)).

Definition resolve_entry (d : digit) (last : bool) (entry : Z) : program coin Z :=
  if entry =? 63 then
    and_then (rest fuel (Lacking d last)) (fun entry => if entry =? 63 then entry_beyond d else Gives entry)
  else Gives entry.

(* Once the first digit of a signed number is 0, the others take no words. *)
Fixpoint magnitude (digits : list digit) (entries : list Z) : program coin Z :=
  match digits, entries with
  | d :: digits, entry :: entries =>
      let last := match digits with [] => true | _ => false end in
      and_then (resolve_entry d last entry) (fun entry =>
        if signed d && (entry =? 0) then Gives 0
        else and_then (magnitude digits entries) (fun more => Gives (entry * step d + more)))
  | _, _ => Gives 0
  end.

(* The number, from its entries as they were drawn, with its sign. *)
Definition resolve (digits : list digit) (drawn : list Z) : program coin Z :=
  and_then (magnitude digits (map Z.abs drawn))
    (fun magnitude => Gives (if hd 0 drawn <? 0 then - magnitude else magnitude)).

(* The number of the words of digits: as it was drawn, if no entry stands for the rest. *)
Definition number_drawn (digits : list digit) (words : list (Z * Z)) : program coin Z :=
  let drawn := draw digits words false true in
  if has_rest drawn then resolve digits drawn else Gives (number digits drawn).
End Numbers.

(* What an entry lacks, by the bounds that alias.rs computes, but that quotients are rounded once. *)
Section Bounds.
Variables (l : law) (at_precision : Z -> constants).

Definition whole (n k : Z) : Z * Z := (k * unit n, k * unit n).
Definition sum_of (x y : Z * Z) : Z * Z := (fst x + fst y, snd x + snd y).
Definition difference (x y : Z * Z) : Z * Z := (Z.max 0 (fst x - snd y), Z.max 0 (snd x - fst y)).
Definition product (n : Z) (x y : Z * Z) : Z * Z := (times n (fst x) (fst y), times n (snd x) (snd y) + 1).
Definition inverse (n : Z) (x : Z * Z) : Z * Z := (unit n * unit n / snd x, unit n * unit n / fst x + 1).

(* An entry of an exponential is e or more with a probability that falls by q = f(step): from what 0 begins with on,
   each by
   the one before. Where 62 is the largest entry, that is larger by 1 / (1 - q^62) or 1 / (1 - q^63); nothing is known
     if
   this is not known to be positive. *)
Fixpoint falling (n : Z) (count : nat) (value q : Z * Z) : list (Z * Z) :=
  match count with O => [] | S count => value :: falling n count (product n value q) q end.
Definition exponential_bounds (d : digit) (last : bool) (n : Z) : list (Z * Z) :=
  let q := density_bounds l at_precision n (step d) in
  let scale := if signed d then inverse n (sum_of (whole n 1) q) else whole n 1 in
  let all := complement n (density_bounds l at_precision n ((if signed d then 62 else 63) * step d)) in
  let first := scaled (if signed d then 2 else 1) scale in
  let first := if last then first else scaled 64 (product n first (inverse n (scaled 64 all))) in
  let from := falling n 64 first q in
  map (fun e =>
    if negb last && (fst all <=? 0) then (0, unit n)
    else if signed d && (e =? 0) then product n (complement n q) scale
    else if e <? 63 then difference (nth (Z.to_nat e) from (0, 0)) (nth (Z.to_nat (e + 1)) from (0, 0))
    else if last then nth 63 from (0, 0) else (0, 0)) (indices 64).

(* Those of a Gaussian from f at 0, 1, 2, ..., with ratios that fall by a constant one, over their sum. *)
Fixpoint bending (n : Z) (count : nat) (value ratio bend : Z * Z) : list (Z * Z) :=
  match count with
  | O => []
  | S count => value :: bending n count (product n value ratio) (product n ratio bend) bend
  end.
Definition gaussian_bounds (n : Z) : list (Z * Z) :=
  let q := density_bounds l at_precision n 1 in
  let masses := bending n (Z.to_nat (63 * (Z.sqrt (n - 1) + 1))) (whole n 1) q (product n q q) in
  let beyond := fold_right sum_of (0, 2) (skipn 63 masses) in
  let both := map (fun e => if e =? 0 then whole n 1
    else scaled 2 (if e <? 63 then nth (Z.to_nat e) masses (0, 0) else beyond)) (indices 64) in
  let inverse := inverse n (fold_right sum_of (0, 0) both) in
  map (fun mass => product n mass inverse) both.

Definition lacking_bounds (d : digit) (last : bool) (n : Z) : list (Z * Z) :=
  let probabilities := if gaussian l then gaussian_bounds n else exponential_bounds d last n in
  map (fun e => difference (scaled (2 ^ 62) (nth (Z.to_nat e) probabilities (0, 0)))
    (whole n (if e <? 63 then entry_words d e else 0))) (indices 64).
Definition sides_of_number (c : coin) : Z -> (Z * Z) * (Z * Z) :=
  match c with
  | Lacking d last e => coin_sides (fun n => nth (Z.to_nat e) (lacking_bounds d last n) (0, 0))
  | OfTail c => sides_of_tail l at_precision c
  end.
End Bounds.
