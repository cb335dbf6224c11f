"""Which tests are slow: `make quick` leaves them out.

Listed are those that took more than about two seconds of computing (`pytest --durations=0`), by file and
function, or by file alone; most start other processes. The rest needs some 150 s of computing, which `make
quick` spreads over two cores, and tries every package. A test of this list (test_manners.py) finds names that
are gone.
"""

import os
from pathlib import Path

import pytest

os.environ.setdefault("MUJOCO_GL", "egl")  # read when MuJoCo is first imported
# Read when torch is first imported. Its threads wait by spinning: on matrices as small as those of the tests
# that takes several times the work itself, and cores from the worlds. Training sets its threads itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).parent
pytest_plugins = ["browsing"]  # tests/helpers: a real browser

SLOW = frozenset(
    {
        "belief/test_belief_env.py::test_a_belief_sees_through_noise",
        "catching/test_mount.py::test_the_picture_shows_plate_and_ball_on_both_mounts",
        "catching/test_policies.py::test_a_shipped_policy_does_what_is_written_of_it",
        "cli/test_cli.py::test_a_cluster_that_does_not_answer_is_named",
        "cli/test_cli.py::test_bench_writes_ratios_by_instances",
        "cli/test_cli.py::test_help_explains_every_verb",
        "cli/test_cli.py::test_play_takes_a_policy_by_name_and_refuses_another_task_s",
        "cli/test_cli.py::test_play_writes_a_video_and_a_picture",
        "cli/test_fci_twin.py::test_it_serves_until_it_is_told_to_stop",
        "docs/test_site.py",
        "experiments/test_bench.py::test_a_robot_s_session_lives_through_a_recorded_trial",
        "experiments/test_bench.py::test_the_parts_of_an_iteration_add_up",
        "experiments/test_cluster.py",
        "experiments/test_deploy.py",
        "experiments/test_distance.py::test_the_command_writes_the_distances_by_preset",
        "experiments/test_faults.py::test_every_fault_changes_something_from_its_beginning_on",
        "experiments/test_kills.py",
        "experiments/test_soak.py::test_an_arm_stops_for_what_must_stop_it_and_goes_on_afterwards",
        "experiments/test_wild.py::test_a_robot_bears_whatever_the_filter_lets_through",
        "experiments/test_study.py::test_a_cell_run_again_gives_the_same_number_to_the_last_digit",
        "experiments/test_study.py::test_a_run_goes_on_from_the_one_that_its_method_names",
        "experiments/test_study.py::test_a_run_that_fails_is_told_and_the_others_go_on",
        "experiments/test_study.py::test_a_study_leaves_a_cell_per_run_and_runs_nothing_twice",
        "experiments/test_study.py::test_results_of_another_recipe_are_not_mixed_in",
        "experiments/test_study.py::test_results_under_a_condition_that_meant_something_else_are_not_mixed_in",
        "experiments/test_study.py::test_runs_end_with_the_process_that_collects_them",
        "experiments/test_study.py::test_the_page_follows_the_files",
        "experiments/test_study.py::test_the_quick_size_of_the_belief_s_study_runs",
        "experiments/test_study.py::test_the_quick_size_of_the_paper_s_study_runs_from_training_to_page",
        "experiments/test_trials.py::test_a_belief_sees_better_around_a_bounce_and_with_poor_cameras_always",
        "experiments/test_trials.py::test_a_film_shows_the_side_and_both_cameras",
        "experiments/test_trials.py::test_a_trial_runs_from_pictures_to_torques_and_repeats_itself",
        "experiments/test_trials.py::test_a_table_goes_on_where_it_stopped",
        "experiments/test_trials.py::test_the_eyes_are_measured_against_the_truth",
        "experiments/test_trials.py::test_windows_do_not_change_what_is_seen",
        "experiments/test_trials.py::test_workers_find_what_one_process_finds",
        "experiments/test_twin_episodes.py::test_on_the_trainings_throws_an_ideal_robot_catches_in_both_worlds",
        "lab/test_belief_observer.py::test_single_sights_of_single_cameras_pull_it",
        "lab/test_fci_clients.py",
        "lab/test_twin.py::test_throws_arrive_in_the_catching_region_in_spite_of_air",
        "lab/test_twin_control.py::test_pictures_agree_with_the_projection",
        "learning/test_belief_training.py",
        "learning/test_damaged_policies.py::test_a_damaged_policy_is_refused_in_one_line_or_works",
        "learning/test_resume.py::test_twenty_kills_at_random_moments_lose_nothing",
        "learning/test_resume.py::test_two_processes_learn_together",
        "report/test_damaged.py::test_a_damaged_file_is_named_in_a_line_and_nothing_is_written",
        "report/test_pages.py::test_a_click_sorts_a_table_by_its_numbers",
        "robot/test_driver.py",
        "robot/test_export.py",
        "robot/test_fr3.py",
        "robot/test_first_run.py::test_a_share_of_the_speed_is_kept_by_the_arm",
        "robot/test_first_run.py::test_an_arm_that_overshoots_its_workspace_is_stopped_by_name",
        "robot/test_identify.py::test_the_twins_gains_and_friction_are_found_whatever_they_are",
        "robot/test_live_balls.py",
        "robot/test_live_session.py",
        "robot/test_log_frames.py::test_a_film_and_a_replay_are_written",
        "robot/test_plate_print.py::test_mujoco_reads_the_file_and_finds_the_same",
        "robot/test_replay.py",
        "robot/test_robot_session.py::test_a_ball_out_of_sight_holds_the_reference_and_is_given_up_after_a_second",
        "robot/test_robot_session.py::test_an_arm_that_cannot_get_home_stops",
        "robot/test_robot_session.py::test_from_connecting_to_a_catch_and_home_again",
        "robot/test_robot_session.py::test_the_way_home_is_slow",
        "robot/test_safety_arm.py",
        "robot/test_safety_anything.py::test_a_million_adversarial_inputs_leave_no_joint_outside_its_limits",
        "robot/test_safety_anything.py::test_sequences_of_anything_keep_the_hard_limits",
        "robot/test_safety.py::test_the_plate_keeps_off_the_robot_and_the_table",
        "robot/test_safety.py::test_the_wrist_stays_above_the_table_too",
        "robot/test_safety_whole.py",
        "robot/test_soft_stop.py",
        "sim/test_world.py::test_128_sets_of_200_fit_in_300_mb",
        "test_wheel.py",
        "view/test_commands.py::test_a_replay_is_one_small_file_that_asks_for_nothing",
        "view/test_commands.py::test_a_throw_lets_the_one_before_go",
        "view/test_commands.py::test_the_page_is_served_on_loopback_alone_until_interrupted",
        "view/test_commands.py::test_the_twin_flies_the_whole_throw",
        "view/test_films.py::test_the_wire_ball_is_drawn_where_the_policy_sees_the_ball",
        "view/test_live.py::test_the_page_takes_a_new_checkpoint_with_the_next_throw",
        "view/test_page.py",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is listed."""
    for item in items:
        file = item.path.relative_to(TESTS).as_posix()
        function = getattr(item, "originalname", item.name)
        if file in SLOW or f"{file}::{function}" in SLOW:
            item.add_marker("slow")
