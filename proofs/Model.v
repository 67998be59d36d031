(* Executable models over integers and primitive floats. One is of a trial, from the tables and the three words to an
   outcome: the code of trials.rs and exp2.rs, operation by operation. The other is of a number from alias tables: the
   code of alias.rs, digit by digit. *)
From Coq Require Import ZArith List Floats Uint63 Bool.
From Coq Require Import SpecFloat.
From Flocq Require Import Zaux.
From Dpnoise.generated Require Import Exponentials.
Import ListNotations.
Open Scope Z_scope.

(* The double with these bits, for numbers that are neither zero nor subnormal; the sign is apart. *)
Definition of_bits (negative : bool) (bits : int) : float :=
  let x := Z.ldexp (of_uint63 ((bits land 4503599627370495) lor 4503599627370496)%uint63) (Uint63.to_Z (bits >>
    52)%uint63 - 1075) in
  if negative then (- x)%float else x.

Inductive sides := One | Folded | Two.
Inductive outcome := Rejected | Accepted | Undecided | Tail.

Record tables := Tables {
  shift : Z; signs : sides; square : bool; rate : float; window : float; amplitude : Z; alias : list Z;
    weights : list Z }.

Definition item (l : list Z) (i : Z) : Z := nth (Z.to_nat i) l 0.

(* Choice of the bin. *)
Definition bin_of (t : tables) (word : Z) : Z :=
  let column := Z.shiftr word 26 in
  let entry := item (alias t) column in
  if Z.land word (2 ^ 26 - 1) <? Z.shiftr entry 6 then column else Z.land entry 63.

(* Where a bin begins, in units of its own width, and the logarithm e of its width in units of 2^shift. *)
Definition start_of (bin : Z) : Z := bin + item [0; 0; 8 - 32; 12 - 48] (Z.shiftr bin 4).
Definition e_of (bin : Z) : Z := item [0; 0; 2; 3] (Z.shiftr bin 4).

Definition magnitude_of (t : tables) (bin offset : Z) : Z :=
  let e := e_of bin + shift t in
  Z.shiftl (start_of bin) e + Z.land offset (Z.shiftl 1 e - 1).

(* The logarithm of m 2^e. *)
Definition copies_of (t : tables) (bin magnitude : Z) : Z :=
  match signs t with
  | Folded => if magnitude <? 1 then e_of bin else e_of bin + 1
  | _ => e_of bin
  end.

(* The arithmetic. *)
Definition float_of (z : Z) : float := of_uint63 (Uint63.of_Z z).
Definition rounder : float := 6755399441055744%float.

(* A whole number, as an integer. *)
Definition integer_of (x : float) : Z :=
  match Prim2SF x with S754_finite false m e => Z.shiftl (Zpos m) e | _ => 0 end.

(* The significand and the exponent of a finite number. *)
Definition parts (x : float) : Z * Z :=
  match Prim2SF x with S754_finite s m e => (cond_Zopp s (Zpos m), e) | _ => (0, 0) end.

(* a b + c, with one rounding or two. *)
Definition multiply_add (fused : bool) (a b c : float) : float :=
  if fused then
    let '(ma, ea) := parts a in let '(mb, eb) := parts b in let '(mc, ec) := parts c in
    let e := Z.min (ea + eb) ec in
    let m := Z.shiftl (ma * mb) (ea + eb - e) + Z.shiftl mc (ec - e) in
    SF2Prim (binary_normalize prec emax m e false)
  else (a * b + c)%float.

Definition coefficient (i : nat) : float := let '(negative, bits) := nth i coefficients (false,
  0%uint63) in of_bits negative bits.

Definition polynomial (fused : bool) (r : float) : float :=
  let s := (r * r)%float in
  let step a i := multiply_add fused a s (coefficient i) in
  let even := step (step (step (step (coefficient 8) 6%nat) 4%nat) 2%nat) 0%nat in
  let odd := step (step (step (step (coefficient 9) 7%nat) 5%nat) 3%nat) 1%nat in
  multiply_add fused odd r even.

Definition exp2_minus (fused : bool) (exponent : Z) (t : float) : float :=
  let t := if PrimFloat.ltb t 1000 then t else 1000%float in
  let rounded := (t + rounder)%float in
  let r := (t - (rounded - rounder))%float in
  (* The low 12 bits of the sum's bits are those of the whole number, and make the exponent of a power of two. *)
  let biased := (exponent + 1023 - integer_of rounded) mod 2 ^ 12 in
  (Z.ldexp one (biased - 1023) * polynomial fused r)%float.

(* Whether acceptance and rejection are certain. *)
Definition judge (fused : bool) (t : tables) (magnitude copies weight uniform : Z) : bool * bool :=
  let left := (float_of uniform * float_of weight)%float in
  let x := float_of magnitude in
  let exponent := ((if square t then x * x else x) * rate t)%float in
  let right := exp2_minus fused (copies + 63) exponent in
  let a := float_of (amplitude t) in
  (PrimFloat.ltb (left + float_of weight) (right * (a * (1 - window t)))%float,
   PrimFloat.ltb (right * (a * (1 + window t)))%float left).

Definition trial (fused : bool) (t : tables) (bin_word offset accept : Z) : outcome * Z :=
  let bin := bin_of t bin_word in
  if bin =? 63 then (Tail, 0) else
  let magnitude := magnitude_of t bin offset in
  let negative := match signs t with One => false | _ => Z.odd accept end in
  let value := if negative then - magnitude else magnitude in
  let '(below, above) :=
    judge fused t magnitude (copies_of t bin magnitude) (item (weights t) bin) (Z.shiftr accept 1) in
  let zero := match signs t with Folded => false | _ => andb negative (magnitude =? 0) end in
  (if zero then Rejected else if below then Accepted else if above then Rejected else Undecided, value).

Definition total (l : list Z) : Z := fold_right Z.add 0 l.

Record digit := Digit { thresholds : list Z; entries : list Z; step : Z; signed : bool }.

(* The entry of a fraction of 56 bits and a byte that holds the column in its lower 6 bits. *)
Definition entry_of (d : digit) (fraction head : Z) : Z :=
  let column := Z.land head (2 ^ 6 - 1) in
  if fraction <? item (thresholds d) column then column else item (entries d) column.

(* The entries of a number, with its sign, from a fraction and a byte for each digit. The first digit of a distribution
   with two signs has them in bit 7, and where its entry is zero no other one counts. *)
Fixpoint draw (digits : list digit) (words : list (Z * Z)) (negative counts : bool) : list Z :=
  match digits, words with
  | d :: digits, (fraction, head) :: words =>
      let entry := entry_of d fraction head in
      let negative := if signed d then Z.testbit head 7 else negative in
      let counts := if signed d then 0 <? entry else counts in
      (if counts then if negative then - entry else entry else 0) :: draw digits words negative counts
  | _, _ => []
  end.

Definition number (digits : list digit) (drawn : list Z) : Z :=
  total (map (fun '(d, entry) => step d * entry) (combine digits drawn)).

(* Whether some entry stands for the rest. *)
Definition has_rest (drawn : list Z) : bool := existsb (fun entry => Z.abs entry =? 63) drawn.
