(* The theorems as Coq prints them, and what they rest on. *)
From Coq Require Import Reals ZArith List.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Model Words Sound Mass Values Exact Fixed Refine Alias Grid Tables Link.
From Dpnoise.generated Require Import Exponentials Trials Numbers Decisions.
Open Scope R_scope.
Set Printing Width 120.

About trials_are_exact.
About power_is_between.
About is_below_is_right.
About open_trials_are_decided.
About tail_holds.
About coins_hold.
About pattern_and_values_are_independent.
About low_bits.
About low_and_high_bits.
About tables_are_sound.
About constants_are_sound.
About exponentials_agree.
About trials_all_agree.
About entry_is_chosen.
About exponential_entries_have_their_words.
About gaussian_entries_have_their_words.
About rest_makes_up_for_the_words.
About signed_digits_make_the_law.
About digits_make_the_law.
About distance_of_many.
About distance_in_L2.
About release_is_private.
About sum_with_one_row_more.
About sum_with_another_row.
About sum_is_private.
About digits_are_sound.
About numbers_agree.
About densities_agree.
About decisions_agree.
About tails_agree.
Definition all := (
  @trials_are_exact,
  @power_is_between,
  @is_below_is_right,
  @open_trials_are_decided,
  @tail_holds,
  @coins_hold,
  @pattern_and_values_are_independent,
  @low_bits,
  @low_and_high_bits,
  @tables_are_sound,
  @constants_are_sound,
  @exponentials_agree,
  @trials_all_agree,
  @entry_is_chosen,
  @exponential_entries_have_their_words,
  @gaussian_entries_have_their_words,
  @rest_makes_up_for_the_words,
  @signed_digits_make_the_law,
  @digits_make_the_law,
  @distance_of_many,
  @distance_in_L2,
  @release_is_private,
  @sum_with_one_row_more,
  @sum_with_another_row,
  @sum_is_private,
  @digits_are_sound,
  @numbers_agree,
  @densities_agree,
  @decisions_agree,
  @tails_agree).
Print Assumptions all.
