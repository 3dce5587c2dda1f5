"""Names that other trainers give to settings, for the message about an unknown one."""

from collections.abc import Iterator

_NAMES = {
    "rollout.n": "num_generations group_size n_samples_per_prompt num_samples_per_prompt samples_per_prompt rollout_n",
    "rollout.prompts": "batch_size train_batch_size rollout_batch_size per_device_train_batch_size",
    "rollout.max_new_tokens": "max_completion_length max_response_length response_length max_tokens",
    "rollout.temperature": "sampling_temperature temperature",
    "optim.mini_batch_size": "ppo_mini_batch_size mini_batch_size",
    "optim.micro_batch_tokens": "ppo_micro_batch_size micro_batch_size micro_train_batch_size",
    "optim.lr": "learning_rate actor_lr actor_learning_rate lr",
    "optim.max_grad_norm": "grad_clip clip_grad gradient_clipping max_norm",
    "data.max_prompt_length": "max_prompt_len prompt_max_len max_prompt_length",
    "data.train_files": "dataset dataset_name dataset_path train_data prompt_data train_file",
    "model.path": "model model_name model_name_or_path pretrain model_path",
    "model.lora_rank": "lora_r lora_rank",
    "reward.function": "reward_fn reward_func reward_funcs reward_function custom_reward_function",
    "steps": "max_steps total_steps num_steps total_training_steps num_episodes",
    "save_every": "save_steps save_freq save_interval",
    "eval.every": "eval_steps test_freq eval_interval",
    "out": "output_dir save_path default_local_dir",
    "nproc": "n_gpus num_gpus nproc_per_node n_gpus_per_node",
    "log.wandb": "report_to use_wandb",
    "controller kl_ref with --set beta=0.05": "kl_coef kl_beta beta kl_loss_coef init_kl_coef use_kl_loss",
    "controller entropy_bonus with --set coef=0.01": "entropy_coef entropy_coeff ent_coef entropy_loss_coef",
    "controller clip_higher with --set eps_high=0.28": "clip_ratio_high epsilon_high clip_eps_high",
    "controller ppo with --set eps_high=0.2": "clip_ratio clip_range eps_clip epsilon cliprange",
}


def _pairs() -> Iterator[tuple[str, str]]:
    for ours, theirs in _NAMES.items():
        for name in theirs.split():
            yield name, ours


SYNONYMS = dict(_pairs())
"""Our key by the last part of a name."""
