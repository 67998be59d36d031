(* The model of symmetric integers by pages of 63 magnitudes, for Skellam and staircase noise and for shares of discrete
   Laplace noise: the code of run_pages in the kernels, and of pages.rs. *)
From Coq Require Import ZArith List Bool.
From Dpnoise Require Import Model Integers Rest.
Import ListNotations.
Open Scope Z_scope.

(* The kernel: all tables are looked up with the second word, and one entry is kept, that of the page that the first
   word chose; 0 where there is no such page. A word is a fraction and a byte; the second byte has the sign. *)
Definition entry_in (tables : list digit) (page : Z) (second : Z * Z) : Z :=
  snd (fold_left (fun '(own, chosen) table =>
    (own + 1, if page =? own then entry_of table (fst second) (snd second) else chosen)) tables (0, 0))%Z.
Definition signed_by (second : Z * Z) (magnitude : Z) : Z :=
  if Z.testbit (snd second) 7 then (- magnitude)%Z else magnitude.
Definition run_pages (pages : digit) (tables : list digit) (first second : Z * Z) : Z * Z * Z :=
  let page := entry_of pages (fst first) (snd first) in
  let entry := entry_in tables page second in
  (page, entry, signed_by second (63 * page + entry)).

(* Coins: that a page or an entry is kept of which the words fall short, and that a magnitude which no page has is the
   first one there is. What pages.rs does where a page or an entry is 63, and the whole draw of a number. *)
Inductive coin := OfPage (page : Z) | OfEntry (page e : Z) | Here (magnitude : Z).

Fixpoint beyond (tries : nat) (magnitude : Z) : program coin Z :=
  match tries with
  | O => Stops
  | S tries => Throws (Here magnitude) (fun here => if here then Gives magnitude else beyond tries (magnitude + 1))
  end.

Definition with_entry (tries : nat) (page entry : Z) : program coin Z :=
  and_then (if (entry =? 63)%Z then rest tries (OfEntry page) else Gives entry)
    (fun entry => Gives (63 * page + entry)%Z).

Definition resolved (tries : nat) (tables : list digit) (page entry : Z) (second : Z * Z) : program coin Z :=
  if (page =? 63)%Z then
    and_then (rest tries OfPage) (fun page =>
      if (page =? 63)%Z then beyond tries (63 * Z.of_nat (length tables))
      else with_entry tries page (entry_in tables page second))
  else with_entry tries page entry.

Definition number_of_pages (tries : nat) (pages : digit) (tables : list digit) (first second : Z * Z)
  : program coin Z :=
  let '(page, entry, number) := run_pages pages tables first second in
  if (page =? 63)%Z || (entry =? 63)%Z then
    and_then (resolved tries tables page entry second) (fun magnitude => Gives (signed_by second magnitude))
  else Gives number.

(* A coin that is kept with half of what is lacking compares 2 U with that. *)
Definition weight (c : coin) : Z := match c with Here _ => 1 | _ => 2 end.
Definition sides_of (bounds : coin -> Z -> Z * Z) (c : coin) (limbs : Z) : (Z * Z) * (Z * Z) :=
  ((weight c * unit limbs, weight c * unit limbs), bounds c limbs)%Z.
