"""Why models of other types can't be read, by config.json's model_type."""

EXPERTS = "a router picks a few of many feed-forward networks for each token; here each layer has one, for all tokens"
_LATENT = f"keys and values are computed from a shared, compressed vector (MLA), and {EXPERTS}"
_STATE = "layers carry a state from token to token, and none or only some of them attend to the tokens before"
_SEVERAL_INPUTS = "it reads images or sounds besides text"
_LLAMA4 = f"{_SEVERAL_INPUTS}, and {EXPERTS}"
_GEMMA3 = f"{_SEVERAL_INPUTS}; its text model alone, saved as gemma3_text, can be read"
_ENCODER = "it is an encoder; of encoders, BERT, RoBERTa, DistilBERT and ModernBERT can be"
_PAIR = "it is an encoder with a decoder; of those, T5, mT5, BART, mBART, Marian and Pegasus can be"

REASONS = {
    model_type: reason
    for reason, model_types in {
        EXPERTS: (
            "mixtral qwen2_moe qwen3_moe gpt_oss granitemoe granitemoeshared olmoe flex_olmo phimoe dbrx"
            " llama4_text jetmoe minimax ernie4_5_moe dots1 glm4_moe hunyuan_v1_moe arctic grok-1 nllb-moe"
        ),
        _LATENT: "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 minicpm3 longcat_flash glm4_moe_lite",
        _STATE: (
            "mamba mamba2 falcon_mamba jamba zamba zamba2 bamba nemotron_h rwkv recurrent_gemma qwen3_next"
            " granitemoehybrid falcon_h1 xlstm lfm2 lfm2_moe kimi_linear olmo_hybrid"
        ),
        _LLAMA4: "llama4",
        _GEMMA3: "gemma3",
        _SEVERAL_INPUTS: (
            "llava llava_next llava_onevision gemma3n qwen2_vl qwen2_5_vl qwen3_vl qwen2_audio qwen2_5_omni mllama"
            " paligemma idefics idefics2 idefics3 smolvlm internvl mistral3 pixtral phi3_v"
            " phi4_multimodal blip-2 instructblip fuyu chameleon aya_vision cohere2_vision glm4v molmo"
        ),
        _ENCODER: (
            "xlm-roberta albert electra deberta deberta-v2 mpnet camembert ernie roformer nomic_bert convbert funnel"
            " longformer big_bird xlm flaubert esm"
        ),
        _PAIR: (
            "umt5 longt5 blenderbot blenderbot-small led m2m_100 prophetnet whisper"
            " switch_transformers bigbird_pegasus encoder-decoder t5gemma"
        ),
    }.items()
    for model_type in model_types.split()
}
"""Sentences that continue "can't be read:"."""
